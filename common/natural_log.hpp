// A logarithm with the same bits on every machine: the C library's may differ in its last bit from
// one to the next; this one is IEEE 754 operations in a written order. Any thread.
#pragma once

namespace gleaner {

// Natural logarithm of a positive, normal x, to about 1e-15.
double natural_log(double x);

}  // namespace gleaner
