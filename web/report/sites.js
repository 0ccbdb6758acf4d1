/* Call sites: the lines of the program that called, as a view by file, function and line, whose widths are the chosen
 * quantity, and as a table that can be sorted. */
import {hideTooltip, showTooltip} from "../plot.js";
import {bar, legendKey, make, section} from "./dom.js";
import {callClass, data, kindName, placeName, shown, watch} from "./model.js";
import * as units from "./units.js";

const ROWS = 200,
    NARROWEST = 0.004; /* of the whole width */

const QUANTITIES = [
    {key: "ns", name: "time", words: units.duration},
    {key: "waiting", name: "waiting", words: units.duration},
    {key: "bytes", name: "bytes", words: units.size},
    {key: "count", name: "calls", words: units.count},
];

/* The calls of one kind from one line, in the selected windows. */
const sitesShown = () => {
    const of = new Map();
    for (const {sites} of shown())
        for (const [place, kind, count, bytes, ns, waiting, waited, longest] of sites) {
            const site = of.get(place * 128 + kind) || {place, kind, count: 0, bytes: 0, ns: 0, waiting: 0, waited: 0, longest: 0};
            site.count += count;
            site.bytes += bytes;
            site.ns += ns;
            site.waiting += waiting;
            site.waited += waited;
            site.longest = Math.max(site.longest, longest);
            of.set(place * 128 + kind, site);
        }
    return [...of.values()];
};

/* --- the view by file, function and line --- */

const lastPart = path => path.slice(path.lastIndexOf("/") + 1);
const levels = ({place, kind}) => {
    const of = data.places[place];
    if (!of) return ["other call sites", "unknown", kindName(kind)];
    const line = of.line === null ? kindName(kind) : `${kindName(kind)}, line ${of.line}`;
    return [lastPart(of.file || of.module || "?"), of.function || of.text, line];
};

/* Sums of the sites with the same name at this level, the largest first. */
const grouped = (sites, level, key) => {
    const of = new Map();
    for (const site of sites) {
        const name = levels(site)[level];
        const group = of.get(name) || {name, sites: [], sum: 0};
        group.sites.push(site);
        group.sum += site[key];
        of.set(name, group);
    }
    return [...of.values()].filter(({sum}) => sum).sort((a, b) => b.sum - a.sum);
};

const total = (sites, key) => sites.reduce((sum, site) => sum + site[key], 0);

const split = sites => {
    const working = kind => total(sites.filter(site => callClass(site.kind) === kind), "ns") -
        total(sites.filter(site => callClass(site.kind) === kind), "waiting");
    const parts = ["c-op", "c-sync"].map(kind => [kind, working(kind)]);
    return bar([...parts, ["c-wait", total(sites, "waiting")]], total(sites, "ns"), "span");
};

const rowsOf = sites =>
    QUANTITIES.map(({key, name, words}) => ["none", name, words(total(sites, key))]).filter(([, , words]) => words !== "0");

/* One box, with those of the next level below it. */
const box = (group, level, whole, all, quantity, choose) => {
    const share = group.sum / whole,
        next = level < 2 ? grouped(group.sites, level + 1, quantity.key) : [];
    const button = make(
        "button",
        {
            type: "button",
            class: "box-name",
            onclick: () => choose(group.sites),
            onpointermove: event => showTooltip(event, `${group.name}: ${units.percent(group.sum / all)}`, rowsOf(group.sites)),
            onpointerleave: hideTooltip,
        },
        make("span", {}, group.name),
        split(group.sites),
    );
    const part = make(
        "li",
        {"data-level": level},
        button,
        next.length
            ? make(
                  "ul",
                  {},
                  next
                      .filter(({sum}) => sum >= all * NARROWEST)
                      .map(inner => box(inner, level + 1, group.sum, all, quantity, choose)),
              )
            : null,
    );
    part.style.setProperty("width", `${share * 100}%`);
    return part;
};

/* --- the table --- */

const SHARE = "Share of the time";
const COLUMNS = [
    {key: "name", title: "Call site"},
    {key: "call", title: "Call"},
    {key: "count", title: "Calls", words: units.count},
    {key: "bytes", title: "Bytes", words: bytes => (bytes ? units.size(bytes) : "")},
    {key: "ns", title: "Time", words: units.duration},
    {key: "waiting", title: "Of that, waiting", words: units.duration},
    {key: "waited", title: "Waited", words: units.count},
    {key: "longest", title: "Longest wait", words: units.duration},
];
const value = (site, key) => (key === "name" ? placeName(site.place) : key === "call" ? kindName(site.kind) : site[key]);
const order = ({key, down}) => (a, b) => {
    const [left, right] = [value(a, key), value(b, key)];
    const less = typeof left === "string" ? left.localeCompare(right, "en", {numeric: true}) : left - right;
    return (down ? -less : less) || b.ns - a.ns;
};

const siteRow = (site, all) => {
    const place = data.places[site.place];
    const parts = [
        [callClass(site.kind), site.ns - site.waiting],
        ["c-wait", site.waiting],
    ];
    return make(
        "tr",
        {},
        make(
            "th",
            {scope: "row", title: place ? place.file || place.module : null},
            placeName(site.place),
            place && place.inlined ? make("small", {}, "inlined " + place.inlined) : null,
        ),
        make("td", {"data-head": "Call"}, kindName(site.kind)),
        COLUMNS.slice(2).map(({key, title, words}) => make("td", {class: "n", "data-head": title}, words(site[key]))),
        make("td", {class: "share", "data-head": SHARE}, units.percent(all ? site.ns / all : 0), bar(parts, all)),
    );
};

export const sitesSection = () => {
    const boxes = make("ul", {class: "boxes", "aria-label": "Call sites by file, function and line"}),
        body = make("tbody"),
        note = make("p", {class: "hint", role: "status"});
    let quantity = QUANTITIES[0],
        sorted = {key: "ns", down: true},
        chosen = null; /* sites, or null for all */

    const heads = COLUMNS.map(({key, title, words}) =>
        make(
            "th",
            {scope: "col", class: words ? "n" : null},
            make(
                "button",
                {
                    type: "button",
                    class: "sort",
                    "data-key": key,
                    onclick: () => {
                        sorted = {key, down: sorted.key === key ? !sorted.down : Boolean(words)};
                        drawTable();
                    },
                },
                title,
            ),
        ),
    );
    const drawTable = () => {
        const all = sitesShown(),
            whole = total(all, "ns");
        const isChosen = site => !chosen || chosen.some(({place, kind}) => place === site.place && kind === site.kind);
        const sites = all.filter(isChosen).sort(order(sorted));
        heads.forEach((head, i) =>
            head.setAttribute("aria-sort", COLUMNS[i].key !== sorted.key ? "none" : sorted.down ? "descending" : "ascending"),
        );
        body.replaceChildren(...sites.slice(0, ROWS).map(site => siteRow(site, whole)));
        note.replaceChildren(
            chosen
                ? make(
                      "button",
                      {
                          type: "button",
                          onclick: () => choose(null),
                      },
                      `Show all ${units.plural(all.length, "call site")}`,
                  )
                : sites.length > ROWS
                  ? `The first ${ROWS} of ${units.count(sites.length)} call sites.`
                  : "",
        );
    };
    const choose = sites => {
        hideTooltip();
        chosen = sites;
        drawTable();
    };
    const drawBoxes = () => {
        const sites = sitesShown(),
            all = total(sites, quantity.key);
        boxes.replaceChildren(
            ...grouped(sites, 0, quantity.key)
                .filter(({sum}) => sum >= all * NARROWEST)
                .map(group => box(group, 0, all, all, quantity, choose)),
        );
        boxes.hidden = !all;
    };
    const draw = () => {
        chosen = null;
        drawBoxes();
        drawTable();
    };
    draw();
    watch(draw);

    const choice = make(
        "form",
        {class: "choice"},
        make(
            "fieldset",
            {},
            make("legend", {}, "Widths are"),
            QUANTITIES.map(one =>
                make(
                    "label",
                    {},
                    make("input", {
                        type: "radio",
                        name: "site-width",
                        value: one.key,
                        checked: one === quantity,
                        onchange: () => {
                            quantity = one;
                            drawBoxes();
                        },
                    }),
                    one.name,
                ),
            ),
        ),
    );
    return section(
        "sites",
        "Call sites",
        "The lines of the program that called. Select a box to see only its lines in the table, and a heading to sort it.",
        make(
            "div",
            {class: "card"},
            make(
                "div",
                {class: "tools"},
                choice,
                make(
                    "ul",
                    {class: "legend"},
                    legendKey("c-op", "operations"),
                    legendKey("c-sync", "synchronisation"),
                    legendKey("c-wait", "waiting"),
                ),
            ),
            boxes,
            make(
                "div",
                {class: "scroll", tabindex: 0, role: "region", "aria-label": "Call sites"},
                make("table", {}, make("thead", {}, make("tr", {}, heads, make("th", {scope: "col"}, SHARE))), body),
            ),
            note,
        ),
    );
};
