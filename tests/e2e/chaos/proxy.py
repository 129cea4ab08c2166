"""A TCP proxy that breaks its connections: it cuts them, leaves them half open, or stalls one direction, at
random bytes. The faults of the n-th connection follow from the seed and n."""

import asyncio
import random
import socket
import struct
import threading

# How many bytes pass in one direction before something happens: log-uniform between these, so that
# the first message is hit as well as the middle of a long life.
BYTES_LOW, BYTES_HIGH = 100, 400_000_000
CONNECT_SECONDS = 5
CUT = "cut"


class Proxy:
    """Listens on loopback and forwards to `target` (host, port), which may be away at times. Runs in a
    thread of its own from start() to stop()."""

    def __init__(self, target, seed, stall_seconds):
        self._target, self._seed, self._stall_seconds = target, seed, stall_seconds
        self.faults_on = True
        self.connections = self.cuts = self.half_opens = self.stalls = 0
        self._loop = asyncio.new_event_loop()
        self._tasks = set()
        self._thread = threading.Thread(target=self._run)
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(256)
        self._listener.setblocking(False)
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]

    def start(self):
        self._thread.start()

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self):
        accepting = self._loop.create_task(self._accept())
        self._loop.run_forever()
        tasks = [accepting, *self._tasks]
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._listener.close()
        self._loop.close()

    async def _accept(self):
        while True:
            near, _ = await self._loop.sock_accept(self._listener)
            self.connections += 1
            task = self._loop.create_task(self._serve(near, self.connections))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, near, number):
        far = socket.socket()
        for end in (near, far):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            # From another address than the target's: while the master is away, a connection to its
            # free port could otherwise be given that very port, meet itself, and keep the master out.
            far.bind(("127.0.0.2", 0))
            await asyncio.wait_for(self._loop.sock_connect(far, self._target), CONNECT_SECONDS)
            draw = random.Random(f"{self._seed}/{number}")
            pumps = [self._loop.create_task(self._pump(source, sink, random.Random(draw.random())))
                     for source, sink in ((near, far), (far, near))]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                was_cut = any(pump.done() and not pump.exception() and pump.result() == CUT
                              for pump in pumps)
                if not was_cut:
                    # What the other direction still carries, a refusal for instance, may arrive.
                    await asyncio.wait(pumps, timeout=1)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
            if was_cut:
                await self._cut(near, far, draw)
        except (OSError, asyncio.TimeoutError):
            pass  # the master is away
        finally:
            near.close()
            far.close()

    async def _cut(self, near, far, draw):
        kind = draw.choice(("reset", "end", "half open"))
        if kind == "half open":
            # One side learns nothing, as after a power cut: it hears no more, and what it says goes
            # nowhere.
            self.half_opens += 1
            _, gone = draw.sample((near, far), 2)
            reset(gone)
            await asyncio.sleep(draw.uniform(*self._stall_seconds))
            return
        self.cuts += 1
        if kind == "reset":
            reset(near)
            reset(far)

    async def _pump(self, source, sink, draw):
        """Carries one direction; CUT when the connection is to break here, None at its end."""
        left = bytes_to_fault(draw)
        while True:
            data = await self._loop.sock_recv(source, 65536)
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return None
            while data:
                passing = data[:left] if self.faults_on else data
                await self._loop.sock_sendall(sink, passing)
                data = data[len(passing):]
                if not self.faults_on:
                    continue
                left -= len(passing)
                if left > 0:
                    continue
                left = bytes_to_fault(draw)
                if draw.random() < 0.5:
                    return CUT
                self.stalls += 1
                await asyncio.sleep(draw.uniform(*self._stall_seconds))


def bytes_to_fault(draw):
    return int(BYTES_LOW * (BYTES_HIGH / BYTES_LOW) ** draw.random())


def reset(end):
    """Closes so that the other side sees a reset instead of an end."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
