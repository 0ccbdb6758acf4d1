/* The regions that the program named, over all windows: the time in them, and what was in it. */
import {bar, figure, make, section, table} from "./dom.js";
import {data} from "./model.js";
import * as units from "./units.js";

const ROWS = 50;

const row = ({name, count, time_ns: time, calls_ns: calls, waiting_ns: waiting, operations, bytes}) =>
    make(
        "tr",
        {},
        make("th", {scope: "row"}, name === null ? "other regions" : name),
        figure(units.count(count)),
        figure(units.duration(time)),
        figure(units.duration(calls)),
        figure(units.duration(waiting)),
        figure(units.count(operations)),
        figure(units.size(bytes)),
        make(
            "td",
            {class: "share"},
            bar(
                [
                    ["c-sync", calls - waiting],
                    ["c-wait", waiting],
                ],
                time,
            ),
        ),
    );

export const regionsSection = () => {
    const sums = data.region_sums,
        left = sums.length - ROWS;
    return section(
        "regions",
        "Regions",
        "Times are sums over all ranks and threads; a region's figures include those of the regions in it.",
        make(
            "div",
            {class: "card"},
            table(
                "Regions",
                ["Region", " Count", " Time", " In calls", " Waiting", " Operations", " Bytes", "Calls, of its time"],
                sums.slice(0, ROWS).map(row),
            ),
            left > 0 ? make("p", {class: "hint"}, `${left} more, with less time`) : null,
        ),
    );
};
