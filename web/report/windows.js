/* The windows of the run: attributes, the path to their memory with its reason, and their operations.  A row selects its
 * window for the rest of the page. */
import {figure, make, section, table} from "./dom.js";
import {data, select, selection, watch, windowName, windows} from "./model.js";
import * as units from "./units.js";

const sizes = ([least, most, all]) =>
    least === most ? `${units.size(least)} a rank` : `${units.size(least)} to ${units.size(most)}, ${units.size(all)} in all`;

/* The paths to its memory; paths other than loads and stores have a reason. */
const memoryPaths = window =>
    make(
        "ul",
        {class: "plain"},
        (window.memory_paths || []).map(path =>
            make(
                "li",
                {},
                make(
                    "span",
                    {class: "path path-" + data.paths[path.path].name, title: data.paths[path.path].meaning},
                    data.paths[path.path].name,
                ),
                window.memory_paths.length > 1 ? ` on ${units.plural(path.ranks, "rank")}` : "",
                path.reason ? make("small", {}, path.reason) : null,
            ),
        ),
    );

/* The paths of operations, when they differ from the above. */
const taken = window => {
    const used = window.taken.map(([count], path) => ({count, path})).filter(({count}) => count);
    return used.length > 1
        ? make("small", {}, used.map(({count, path}) => `${units.count(count)} ${data.paths[path].name}`).join(", "))
        : null;
};

const HEADS = [
    "Window",
    "Flavour",
    " Ranks",
    "Size",
    "Reached by",
    " Operations",
    " Bytes",
    " In operations",
    " In synchronisation",
    " Of that, waiting",
];

export const windowsSection = () => {
    const rows = windows.map((window, place) => {
        const sum = (list, i) => list.reduce((all, row) => all + row[i], 0);
        const button = make(
            "button",
            {
                type: "button",
                class: "choose",
                "aria-pressed": "false",
                "data-window": place,
                onclick: () => select(selection() === place ? -1 : place),
            },
            windowName(place),
        );
        return make(
            "tr",
            {"data-window": place},
            make("th", {scope: "row"}, button, window.site ? make("small", {}, "created in " + window.site) : null),
            make("td", {}, window.flavour || ""),
            figure(window.ranks === undefined ? "" : units.count(window.ranks)),
            make("td", {}, window.size ? (window.flavour === "dynamic" ? "" : sizes(window.size)) : ""),
            make("td", {}, memoryPaths(window)),
            figure(units.count(sum(window.operations, 0)), taken(window)),
            figure(units.size(sum(window.operations, 1))),
            figure(units.duration(sum(window.operations, 2))),
            figure(units.duration(sum(window.calls, 1))),
            figure(units.duration(window.causes.reduce((all, ns) => all + ns, 0))),
        );
    });
    for (const row of rows) row.querySelectorAll("td").forEach((cell, i) => (cell.dataset.head = HEADS[i + 1].trim()));
    watch(chosen =>
        rows.forEach((row, place) => {
            row.classList.toggle("chosen", place === chosen);
            row.querySelector("button").setAttribute("aria-pressed", String(place === chosen));
        }),
    );
    return section(
        "windows",
        "Windows",
        "Select one to see only its data below. Times are sums over the ranks.",
        make(
            "div",
            {class: "card"},
            table(
                "Windows",
                HEADS,
                rows,
            ),
        ),
    );
};

/* The selection, which stays visible. */
export const windowChoice = () => {
    const box = make(
        "select",
        {name: "window", id: "choice", onchange: () => select(Number(box.value))},
        make("option", {value: -1}, "all windows"),
        windows.map((_, place) => make("option", {value: place}, windowName(place))),
    );
    watch(chosen => {
        box.value = String(chosen);
    });
    return make("label", {}, "Window ", box);
};
