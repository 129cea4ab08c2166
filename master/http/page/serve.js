// The page of `gleaner serve`: the box alone.

import { preparePredict } from "./predict.js";

preparePredict();
