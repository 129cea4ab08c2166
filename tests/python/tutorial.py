"""A first hour with Gleaner in Python: this script is a tutorial, and a test runs it.

Run it with PYTHONPATH=build/release/python where the packages python3-gleaner and gleaner-master are
not installed. It takes pandas and matplotlib where they are there.
"""

import os
import pickle
import tempfile

from gleaner import Gleaner, Model

try:
    import pandas
except ImportError:
    pandas = None
try:
    import matplotlib
    matplotlib.use("Agg")
except ImportError:
    matplotlib = None

# ---- 1. Examples: texts, and for each a list of tags ---------------------------------------------

ANIMALS = {
    "owl": "owl night feathers hoot tree", "bee": "bee honey flower sting hive",
    "cat": "cat whiskers mouse purr sofa", "cow": "cow milk field grass moo",
    "eel": "eel river fish slippery water", "fox": "fox red clever hen forest",
}
texts, tags = [], []
for i in range(600):
    animal, words = list(ANIMALS.items())[i % len(ANIMALS)]
    words = words.split()
    texts.append(f"The {words[i // 6 % 5]} and the {words[i // 30 % 5]}, number {i % 17}")
    tags.append([animal, "flies" if animal in ("owl", "bee") else "does not fly"])
if pandas is not None:  # columns of a frame are taken as lists are
    frame = pandas.DataFrame({"text": texts, "tags": tags})
    texts, tags = frame["text"], frame["tags"]

# ---- 2. Train, on this machine, and measure on examples that were held out -----------------------
# Few texts would get a hidden layer; hidden=0 gives each label weights straight over words.

folder = tempfile.TemporaryDirectory()
model = Gleaner(f"{folder.name}/animals", epochs=5, hidden=0)
model.fit(texts[:500], tags[:500], test=(texts[500:], tags[500:]))
print(f"P@1 of the run {model.finished['p_at_1']:.3f}")

# ---- 3. Ask it -----------------------------------------------------------------------------------

for label, probability in model.predict(["A hoot at night"], k=2)[0]:
    print(f"{label}: {100 * probability:.1f} %")
for word, part in model.explain("A hoot at night", "owl"):
    print(f"  because of {word}: {part:+.2f}")
matrix = model.top_k(texts[500:], k=3)  # scipy CSR, examples x labels
assert matrix.shape == (100, len(model.model.label_names)) and matrix.nnz == 300

# ---- 4. Look at it: figures, a threshold, the way there ------------------------------------------

figures = model.evaluate(texts[500:], tags[500:])
print(", ".join(f"{name} {figures[name]:.3f}" for name in ("p_at_1", "ndcg_at_5", "recall_at_5")))
chosen = model.best_threshold(texts[500:], tags[500:])
print(f"labels from {100 * chosen['threshold']:.0f} % on: F1 {chosen['f1']:.3f}")
believed = model.predict(texts[500:], k=20, threshold=chosen["threshold"])
history = model.history()
if pandas is not None and matplotlib is not None:
    history.plot(x="epoch", y=["p_at_1", "loss"]).figure.savefig(f"{folder.name}/history.png")
    assert os.path.getsize(f"{folder.name}/history.png") > 0
assert len(history) == 5 and "<svg" in model._repr_html_()  # what a notebook shows

# ---- 5. Train on, with more examples and a tag that is new ---------------------------------------

new = [f"a {word} on the ice, number {i}" for i in range(40) for word in ("penguin", "waddling")]
model.partial_fit(new + list(texts[:80]), [["penguin", "does not fly"]] * 80 + list(tags[:80]), epochs=5)

# ---- 6. Keep it: one file with its words, for any program; a pickle; the run itself --------------

model.save(f"{folder.name}/animals.safetensors")
kept = Model.load(f"{folder.name}/animals.safetensors")
again = pickle.loads(pickle.dumps(model.model))
run = Gleaner.load(f"{folder.name}/animals")
for other in (kept, again, run):
    assert other.predict(["A hoot at night"]) == model.predict(["A hoot at night"])

# ---- What a test looks at ------------------------------------------------------------------------

assert figures["p_at_1"] > 0.9 and len(believed) == 100
assert model.score(texts[500:], tags[500:]) > 0.9
assert {label for label, _ in kept.predict(["the hoot of an owl"], k=2)[0]} == {"owl", "flies"}
assert "penguin" in kept.label_names
