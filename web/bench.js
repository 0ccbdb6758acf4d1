/* What the scripts of the benchmark's page find as `library`: the parts of D3 that they use, and what all our pages share. */
import {extent, leastIndex, max, mean, min} from "d3-array";
import {scaleLog} from "d3-scale";
import {pointer, select} from "d3-selection";
import {line, symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle} from "d3-shape";

export const d3 = {extent, leastIndex, line, max, mean, min, pointer, scaleLog, select, symbol, symbolCircle, symbolCross,
                   symbolDiamond, symbolSquare, symbolStar, symbolTriangle};
export * as plot from "./plot.js";
