/* Where the time goes: operations and synchronisation calls by kind, and the causes and ranks of waiting. */
import {bar, figure, make, section, table} from "./dom.js";
import {added, calls, causeClass, data, rankWords, shown, watch} from "./model.js";
import * as units from "./units.js";

const share = (parts, whole) => make("td", {class: "share"}, bar(parts, whole));

const operationRows = (operations, most) =>
    operations
        .map(([count, bytes, ns], kind) => ({kind, count, bytes, ns}))
        .filter(({count}) => count)
        .map(({kind, count, bytes, ns}) =>
            make(
                "tr",
                {},
                make("th", {scope: "row", title: data.operations[kind].meaning}, data.operations[kind].name),
                figure(units.count(count)),
                figure(units.size(bytes)),
                figure(units.duration(ns)),
                figure(units.duration(ns / count)),
                share([["c-op", ns]], most),
            ),
        );

const callRows = (called, most) =>
    called
        .map(([count, ns, waiting, waited, longest], kind) => ({kind, count, ns, waiting, waited, longest}))
        .filter(({count}) => count)
        .sort((a, b) => b.ns - a.ns)
        .map(call =>
            make(
                "tr",
                {},
                make("th", {scope: "row", title: data.calls[call.kind].meaning}, data.calls[call.kind].name),
                figure(units.count(call.count)),
                figure(units.duration(call.ns)),
                figure(units.duration(call.waiting)),
                figure(units.count(call.waited)),
                figure(units.duration(call.longest)),
                share(
                    [
                        ["c-sync", call.ns - call.waiting],
                        ["c-wait", call.waiting],
                    ],
                    most,
                ),
            ),
        );

/* The ranks that others waited for: the sum over all waiting ranks, with the main cause. */
const culprits = () => {
    const of = new Map();
    for (const {waits} of shown())
        waits.awaited.forEach((row, i) => {
            const rank = of.get(row) || {row, ns: 0, causes: new Map()};
            rank.ns += waits.ns[i];
            rank.causes.set(waits.cause[i], (rank.causes.get(waits.cause[i]) || 0) + waits.ns[i]);
            of.set(row, rank);
        });
    return [...of.values()].sort((a, b) => b.ns - a.ns).slice(0, 10);
};

export const callsSection = () => {
    const room = make("div", {class: "cards halves"});
    const draw = () => {
        const operations = added("operations"),
            called = calls(),
            causes = added("causes");
        const waiting = causes.reduce((all, ns) => all + ns, 0),
            late = culprits();
        const mostOp = Math.max(...operations.map(row => row[2])),
            mostCall = Math.max(...called.map(row => row[1]));
        const estimated = data.run.sample > 1 ? ", estimated from samples" : "";
        const card = (title, content) => make("figure", {}, make("figcaption", {}, title), content);
        const nothing = text => make("p", {class: "nothing"}, text);
        room.replaceChildren(
            card(
                "Operations" + estimated,
                operations.some(row => row[0])
                    ? table(
                          "Operations",
                          ["Kind", " Count", " Bytes", " Time", " Mean", "Share"],
                          operationRows(operations, mostOp),
                      )
                    : nothing("There were none."),
            ),
            card(
                "Synchronisation",
                table(
                    "Synchronisation",
                    ["Call", " Count", " Time", " Of that, waiting", " Waited", " Longest wait", "Split"],
                    callRows(called, mostCall),
                ),
            ),
            card(
                "Why calls waited",
                waiting
                    ? table(
                          "Causes",
                          ["Cause", " Time", " Share", "Meaning"],
                          causes
                              .map((ns, cause) => ({ns, cause}))
                              .filter(({ns}) => ns)
                              .sort((a, b) => b.ns - a.ns)
                              .map(({ns, cause}) =>
                                  make(
                                      "tr",
                                      {},
                                      make(
                                          "th",
                                          {scope: "row"},
                                          make("i", {class: "key " + causeClass(cause)}),
                                          data.causes[cause].name,
                                      ),
                                      figure(units.duration(ns)),
                                      figure(units.percent(ns / waiting)),
                                      make("td", {}, data.causes[cause].meaning),
                                  ),
                              ),
                      )
                    : nothing("No call waited for another rank."),
            ),
            card(
                "Ranks that others waited for",
                late.length
                    ? table(
                          "Ranks that were waited for",
                          ["Rank", " Time that others waited", "Mostly for", "Share"],
                          late.map(({row, ns, causes: by}) => {
                              const [cause] = [...by].sort((a, b) => b[1] - a[1])[0];
                              return make(
                                  "tr",
                                  {},
                                  make("th", {scope: "row"}, rankWords(row, data.pairs_ranks_per_row)),
                                  figure(units.duration(ns)),
                                  make("td", {}, data.causes[cause].name),
                                  share([[causeClass(cause), ns]], late[0].ns),
                              );
                          }),
                      )
                    : nothing("No wait was for a single rank."),
            ),
        );
    };
    draw();
    watch(draw);
    return section("calls", "Where the time goes", "Sums over the ranks.", room);
};
