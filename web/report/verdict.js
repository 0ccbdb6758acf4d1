/* The verdict: what costs most of the time, and what to do about it, in the command's words. */
import {make} from "./dom.js";
import {data, windows} from "./model.js";
import * as units from "./units.js";

const SHOWN = 5;

const sentence = ({cost_ns, problem, remedy}, whole) =>
    make(
        "li",
        {},
        make("b", {}, whole ? units.percent(cost_ns / whole) : units.duration(cost_ns)),
        make("div", {}, make("p", {}, problem + "."), make("p", {class: "remedy"}, remedy + ".")),
    );

export const verdict = () => {
    if (!data.verdict || (!windows.length && !data.verdict.notes.length)) return null;
    const {ranks_ns: whole, calls_ns: inside, waiting_ns: waiting, notes, diagnoses} = data.verdict,
        left = diagnoses.length - SHOWN;
    return make(
        "section",
        {id: "verdict", "aria-label": "Verdict"},
        make(
            "p",
            {},
            whole
                ? `${units.percent(inside / whole)} of ${units.duration(whole / data.run.traced)} in window calls, ` +
                      `${units.percent(waiting / whole)} waiting`
                : `${units.duration(inside)} in window calls, ${units.duration(waiting)} waiting`,
            diagnoses.length || !(whole || inside) ? "." : "; nothing stands out.",
        ),
        notes.map(note => make("p", {class: "note"}, note + ".")),
        diagnoses.length
            ? make(
                  "ol",
                  {},
                  diagnoses.slice(0, SHOWN).map(diagnosis => sentence(diagnosis, whole)),
              )
            : null,
        left > 0 ? make("p", {class: "hint"}, `${left} more, which cost less`) : null,
    );
};
