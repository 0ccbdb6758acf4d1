/* The head of the page: the run, missing data, and the main figures. */
import {make} from "./dom.js";
import {added, data, windows} from "./model.js";
import * as units from "./units.js";
import {verdict} from "./verdict.js";

/* Of the standard ABI with the MPI that implements it. */
export const hostText = ({host, host_version}) =>
    host === "abi"
        ? `MPI's standard ABI${host_version ? `, ${host_version}` : ""}`
        : {mpich: "MPICH", openmpi: "Open MPI"}[host] || host;

const facts = () => {
    const run = data.run,
        check = data.check;
    const rows = run
        ? [
              ["Program", run.program],
              ["Ranks", units.count(run.ranks)],
              ["Nodes", run.nodes > 1 ? units.count(run.nodes) : null],
              ["Host", hostText(run)],
              ["Began", run.began],
              ["Lasted", units.duration(run.last_ns)],
              [
                  "Clocks",
                  run.clock_error_ns === null
                      ? "aligned only by the system dates"
                      : run.clock_error_ns && `within ${units.duration(run.clock_error_ns)}`,
              ],
              ["Oriel", run.oriel],
          ]
        : [
              ["Program", check.program],
              ["Ranks", check.ranks],
              ["Host", hostText(check)],
              ["Oriel", check.oriel],
          ];
    return make(
        "dl",
        {class: "facts"},
        rows
            .filter(([, value]) => value !== null && value !== undefined && value !== 0)
            .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))),
    );
};

/* Limitations of the data that the reader must know first. */
const limitations = () => {
    const run = data.run,
        notes = [];
    if (run.traced < run.ranks)
        notes.push(
            `The page has traces of ${units.count(run.traced)} of ${units.plural(run.ranks, "rank")}` +
                `${run.filter ? ` (filter ${run.filter})` : ""}.`,
        );
    if (run.dropped)
        notes.push(
            `${units.plural(run.dropped, "event")} were dropped during the run, in addition to the ` +
                `${units.count(run.events)} that are here: the figures below are too low.`,
        );
    const words = rank =>
        [
            rank.problem,
            rank.ended ? null : "did not reach MPI_Finalize",
            rank.dropped ? `${units.plural(rank.dropped, "event")} dropped` : null,
        ]
            .filter(Boolean)
            .join("; ");
    if (!notes.length && !run.incomplete) return null;
    return make(
        "div",
        {class: "banner", role: "note"},
        notes.join(" "),
        run.incomplete
            ? make(
                  "details",
                  {},
                  make("summary", {}, `${units.plural(run.incomplete, "rank")} with incomplete data`),
                  make(
                      "ul",
                      {},
                      run.incomplete_ranks.map(rank => make("li", {}, `rank ${rank.rank}: ${words(rank)}`)),
                      run.incomplete > run.incomplete_ranks.length
                          ? make("li", {}, `and ${units.count(run.incomplete - run.incomplete_ranks.length)} more`)
                          : null,
                  ),
              )
            : null,
    );
};

const tile = (value, words, kind = "") => make("div", {class: "tile " + kind}, make("b", {}, value), make("span", {}, words));

const tiles = () => {
    const list = [],
        run = data.run,
        findings = data.check && data.check.findings;
    if (run && data.verdict && windows.length) {
        const operations = added("operations"),
            sum = (rows, i) => rows.reduce((all, row) => all + row[i], 0);
        /* as the verdict has them, of the time without pauses */
        const {ranks_ns: whole, calls_ns: inside, waiting_ns: waiting} = data.verdict,
            share = ns => units.percent(whole ? ns / whole : 0);
        list.push(
            tile(units.count(sum(operations, 0)), "operations"),
            tile(units.size(sum(operations, 1)), "of data"),
            tile(units.count(run.windows), run.windows === 1 ? "window" : "windows"),
            tile(share(inside), "of the ranks' time in window calls"),
            tile(share(waiting), "waiting for other ranks", waiting > 0.1 * whole ? "bad" : ""),
        );
    }
    if (findings)
        list.push(
            tile(
                units.count(findings.length),
                findings.length === 1 ? "finding" : "findings",
                findings.length ? "bad" : "good",
            ),
        );
    return make("div", {class: "tiles"}, list);
};

export const summary = () => {
    const program = (data.run || data.check).program;
    const title = `${program ? program.split(" ")[0].split("/").pop() : "A program"}: one-sided communication`;
    document.title = title;
    return [make("h1", {}, title), data.run ? limitations() : null, verdict(), facts(), tiles()];
};
