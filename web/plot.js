/* Shared by all plots of Oriel's pages: size, axes, tooltip.  Text is only set with .text(), so data cannot become an element;
 * colours are in the style sheet. */
import {mean} from "d3-array";
import {select} from "d3-selection";

/* Empties the container and adds a drawing of its width. */
export const canvas = (container, width, height, label) => select(container).html(null).append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height)
    .attr("role", "img").attr("aria-label", label);

/* The tooltip: a heading, and rows of [class or null, name, value]. */
const box = select("body").append("div").attr("class", "box").attr("hidden", "");
export const showTooltip = (event, heading, rows, note) => {
    box.html(null).attr("hidden", null);
    box.append("strong").text(heading);
    const table = box.append("table");
    rows.forEach(([kind, name, value]) => {
        const row = table.append("tr");
        row.append("td").append("i").attr("class", kind);
        row.append("td").text(name);
        row.append("td").text(value);
    });
    if (note)
        box.append("p").text(note);
    const size = box.node().getBoundingClientRect();
    const right = event.clientX + 16 + size.width < window.innerWidth;
    box.style("left", Math.max(4, right ? event.clientX + 16 : event.clientX - 16 - size.width) + "px")
        .style("top", Math.max(4, Math.min(event.clientY + 12, window.innerHeight - size.height - 4)) + "px");
};
export const hideTooltip = () => box.attr("hidden", "");

/* Cuts a label to the available width; bold letters of 12 pixels are about 7.3 pixels wide. */
export const shorten = (text, room) =>
    text.length * 7.3 <= room ? text : text.slice(0, Math.max(1, Math.floor(room / 7.3) - 1)) + "…";

/* Ticks [[value, label]] without those whose labels are too close to a previous one. */
export const thin = (ticks, scale, room) => {
    const taken = [];
    return ticks.filter(([value]) => {
        const fits = taken.every(place => Math.abs(scale(value) - place) >= room);
        if (fits)
            taken.push(scale(value));
        return fits;
    });
};

export const axisBelow = (svg, ticks, scale, top, bottom, label) => {
    const axis = svg.append("g").attr("class", "axis");
    const width = Math.max(...ticks.map(([, text]) => text.length), 1) * 6 + 14;
    thin(ticks, scale, width).forEach(([value, text]) => {
        axis.append("line").attr("class", "grid").attr("x1", scale(value)).attr("x2", scale(value)).attr("y1", top)
            .attr("y2", bottom);
        axis.append("text").attr("x", scale(value)).attr("y", bottom + 15).attr("text-anchor", "middle").text(text);
    });
    axis.append("text").attr("class", "title").attr("x", mean(scale.range())).attr("y", bottom + 31)
        .attr("text-anchor", "middle").text(label);
};

export const axisLeft = (svg, ticks, scale, left, right, label) => {
    const axis = svg.append("g").attr("class", "axis");
    thin(ticks, scale, 18).forEach(([value, text]) => {
        axis.append("line").attr("class", "grid").attr("y1", scale(value)).attr("y2", scale(value)).attr("x1", left)
            .attr("x2", right);
        axis.append("text").attr("x", left - 6).attr("y", scale(value)).attr("dy", "0.32em").attr("text-anchor", "end")
            .text(text);
    });
    axis.append("text").attr("class", "title").attr("x", 0).attr("y", 9).text("↑ " + label);
};
