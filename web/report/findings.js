/* The checker's findings: error, lines of the program, call sites, help, and the rule. */
import {make, section} from "./dom.js";
import {data} from "./model.js";
import * as units from "./units.js";

const place = site =>
    site.file
        ? `${site.file}${site.line ? ":" + site.line : ""}`
        : site.module
          ? `offset 0x${(site.offset || 0).toString(16)} of ${site.module}`
          : "an unknown call site";

const call = (title, site) =>
    site && site.call
        ? [
              make("dt", {}, title),
              make(
                  "dd",
                  {},
                  typeof site.rank === "number" ? `rank ${site.rank}: ` : "",
                  make("code", {}, site.call),
                  " at ",
                  make("code", {}, place(site)),
                  site.function ? [" in ", make("code", {}, site.function)] : "",
                  site.inlined ? `, inlined into ${site.inlined}` : "",
              ),
          ]
        : [];

const range = (first, count, unit) =>
    typeof first !== "number"
        ? ""
        : count > 1
          ? `, ${unit}s ${units.count(first)} to ${units.count(first + count - 1)}`
          : `, ${unit} ${units.count(first)}`;

const where = finding =>
    finding.window || finding.flavour
        ? [
              make("dt", {}, "Window"),
              make(
                  "dd",
                  {},
                  finding.window ? `“${finding.window}”` : "without a name",
                  finding.flavour ? ` (${finding.flavour})` : "",
                  typeof finding.target === "number" ? `, target rank ${finding.target}` : "",
                  range(finding.offset, finding.bytes, "byte"),
                  range(finding.element, finding.elements, "element"),
              ),
          ]
        : [];

const words = (title, text) => (text ? [make("dt", {}, title), make("dd", {}, text)] : []);

const ranks = list =>
    Array.isArray(list) && list.length
        ? `, by ${list.length > 1 ? "ranks" : "rank"} ${list.slice(0, 16).join(", ")}` +
          (list.length > 16 ? ` and ${list.length - 16} more` : "")
        : "";

const lines = (kind, list) => (Array.isArray(list) && list.length ? make("pre", {class: kind}, list.join("\n")) : null);
const folded = (title, ...parts) => (parts[0] ? make("details", {}, make("summary", {}, title), ...parts) : null);

const card = finding => {
    const rule = data.rules[finding.rule]; /* none in a file of another version */
    return make(
        "article",
        {class: "finding"},
        make("h3", {}, make("span", {class: "rule"}, finding.rule), " ", finding.headline || finding.title),
        lines("source", finding.source),
        make(
            "dl",
            {},
            where(finding),
            call("Call", finding.call),
            call(finding.call ? "Before it" : "Call", finding.other),
            call("Epoch opened", finding.opening),
            words("Detail", finding.detail),
            words("Help", finding.help),
            words("Rule", rule && rule.text),
            words("Does not count", finding.reason),
            words("Seen", `${units.plural(finding.count || 1, "time")}${ranks(finding.ranks)}`),
        ),
        folded("Stack", lines("stack", finding.stack)),
        rule ? folded(`Example of ${finding.rule}`, make("pre", {}, rule.example), make("p", {}, rule.remedy)) : null,
    );
};

export const findingsSection = () => {
    const check = data.check,
        notes = [];
    if (!check.complete) notes.push("Not all ranks reached MPI_Finalize: these are the findings of one node.");
    if (!check.local_accesses_watched)
        notes.push("The program's own loads and stores were not checked; compile it with -fsanitize=thread for that.");
    if (check.findings_lost) notes.push(`There was no room for ${units.count(check.findings_lost)} more findings.`);
    for (const {what, count} of check.not_checked || []) notes.push(`Not checked: ${what} (${units.count(count)}).`);
    return section(
        "findings",
        "Findings",
        data.run && data.run.program !== check.program && check.program
            ? `From the checked run of ${check.program}.`
            : "From a checked run.",
        notes.length
            ? make(
                  "ul",
                  {class: "notes"},
                  notes.map(note => make("li", {}, note)),
              )
            : null,
        check.findings.length ? check.findings.map(card) : make("p", {class: "nothing"}, "No findings."),
    );
};
