"use strict";
/* The page of `oriel bench`: draws every plot with its available width, again when that changes, and filters by memory and
 * operation. Filters only hide elements; the page's writer made the tables and the data. Runs when the page is loaded. */
(() => {
    const form = document.getElementById("filters");
    const plots = Array.from(document.querySelectorAll("[data-plot]")).map(container =>
        ({container, spec: oriel.data.plots[Number(container.dataset.plot)], width: 0}));

    const chosen = () => {
        if (!form)
            return {memory: () => true, pattern: () => true};
        const memories = new Set(Array.from(form.elements.memory.length ? form.elements.memory : [form.elements.memory])
            .filter(box => box.checked).map(box => box.value));
        const pattern = form.elements.pattern.value;
        return {memory: name => memories.has(name), pattern: name => pattern === "*" || name === pattern};
    };

    const draw = plot => {
        const width = Math.floor(plot.container.clientWidth);
        if (width < 1) /* hidden: drawn when shown */
            return;
        plot.width = width;
        oriel.draw[plot.spec.kind](plot.container, plot.spec, Math.max(width, 280), chosen());
    };

    const filter = () => {
        const what = chosen();
        document.querySelectorAll("[data-memory], [data-pattern]").forEach(part => {
            part.hidden = (part.dataset.memory !== undefined && !what.memory(part.dataset.memory))
                || (part.dataset.pattern !== undefined && !what.pattern(part.dataset.pattern));
        });
        plots.filter(plot => plot.spec.kind === "bars").forEach(plot => {
            const figure = plot.container.closest("figure");
            figure.hidden = figure.hidden || !plot.spec.rows.some(row => what.pattern(row.pattern));
        });
        document.querySelectorAll("section.plots").forEach(part => {
            part.hidden = !part.querySelector("figure:not([hidden])");
        });
        plots.filter(plot => plot.spec.kind !== "lines" || !plot.width).forEach(draw);
    };

    plots.forEach(draw);
    if (form) {
        form.hidden = false;
        form.addEventListener("change", filter);
        form.addEventListener("submit", event => event.preventDefault());
    }
    /* Outside the observer's callback: a plot's new height may add a scroll bar, and so change the width. */
    const fit = () => plots.filter(plot => Math.floor(plot.container.clientWidth) !== plot.width).forEach(draw);
    const watch = new ResizeObserver(() => setTimeout(fit, 0));
    plots.forEach(plot => watch.observe(plot.container));
    document.addEventListener("keydown", event => event.key === "Escape" && oriel.hideTooltip());
    document.addEventListener("scroll", oriel.hideTooltip, {passive: true});
    document.documentElement.dataset.drawn = plots.length;
})();
