/* The page of `oriel report`: assembles the sections for which there are data.  Runs when the page is loaded. */
import {hideTooltip} from "../plot.js";
import {callsSection} from "./calls.js";
import {comparisonParts} from "./compare.js";
import {make} from "./dom.js";
import {findingsSection} from "./findings.js";
import {heatSection} from "./heat.js";
import {histogramsSection} from "./histograms.js";
import {data, windows} from "./model.js";
import {regionsSection} from "./regions.js";
import {sitesSection} from "./sites.js";
import {summary} from "./summary.js";
import {timelineSection} from "./timeline.js";
import {windowChoice, windowsSection} from "./windows.js";

const page = document.getElementById("page");
const makers = [
    ...(windows.length
        ? [
              ["Windows", windowsSection],
              ["Pairs", heatSection],
              ["Call sites", sitesSection],
              ...(data.region_sums.length ? [["Regions", regionsSection]] : []),
              ["Timeline", timelineSection],
              ["Time", callsSection],
              ["Sizes", histogramsSection],
          ]
        : []),
    ...(data.check ? [["Findings", findingsSection]] : []),
];
page.append(...(data.comparison ? comparisonParts() : summary()).filter(Boolean));
if (data.run && !windows.length) page.append(make("p", {class: "nothing"}, "The run created no windows, or none was traced."));
const sections = makers.map(([, maker]) => maker());
if (windows.length)
    page.append(
        make(
            "nav",
            {id: "bar", "aria-label": "Page"},
            windowChoice(),
            make(
                "ul",
                {},
                sections.map((section, i) => make("li", {}, make("a", {href: "#" + section.id}, makers[i][0]))),
            ),
        ),
    );
page.append(...sections);
if (data.run)
    page.append(
        make(
            "footer",
            {},
            "Times of different ranks are aligned as precisely as their clocks allow. A call's waiting is its time spent " +
                "on other ranks, spinning or sleeping; colours show the cause.",
        ),
    );
document.addEventListener("keydown", event => event.key === "Escape" && hideTooltip());
document.addEventListener("scroll", hideTooltip, {passive: true});
document.documentElement.dataset.drawn = sections.length + (data.comparison ? 1 : 0);
