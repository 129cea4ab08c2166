// The page of `gleaner serve`: the box for questions, and the histories of the stores it was given.

import { prepareCompare } from "./compare.js";
import { preparePredict } from "./predict.js";

preparePredict();
prepareCompare();
