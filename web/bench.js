/* The object `library` of the benchmark page's scripts: the used parts of D3, and code shared by all pages. */
import {extent, leastIndex, max, mean, min} from "d3-array";
import {scaleLog} from "d3-scale";
import {pointer, select} from "d3-selection";
import {line, symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle} from "d3-shape";

export const d3 = {extent, leastIndex, line, max, mean, min, pointer, scaleLog, select, symbol, symbolCircle, symbolCross,
                   symbolDiamond, symbolSquare, symbolStar, symbolTriangle};
export * as plot from "./plot.js";
