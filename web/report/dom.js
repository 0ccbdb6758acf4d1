/* Elements of the page.  Text is always set as text: data cannot become an element. */
export const make = (tag, attributes = {}, ...children) => {
    const part = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
        if (name.startsWith("on")) part.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false) part.setAttribute(name, value === true ? "" : value);
    part.append(...children.flat().filter(child => child !== null && child !== undefined));
    return part;
};

/* An entry of a legend.  kind: the class of its colour. */
export const legendKey = (kind, name) => make("li", {}, make("i", {class: "key " + kind}), name);

/* A table that scrolls separately on a narrow screen.  heads: strings; a leading space marks a column of figures. */
export const table = (label, heads, rows) =>
    make(
        "div",
        {class: "scroll", tabindex: 0, role: "region", "aria-label": label},
        make(
            "table",
            {},
            make(
                "thead",
                {},
                make(
                    "tr",
                    {},
                    heads.map(head => make("th", {scope: "col", class: head.startsWith(" ") ? "n" : null}, head.trim())),
                ),
            ),
            make("tbody", {}, rows),
        ),
    );
/* A bar of parts, each a share of the whole: [class, value]. */
export const bar = (parts, whole, tag = "div") =>
    make(
        tag,
        {class: "stack", "aria-hidden": "true"},
        parts.map(([kind, value]) => {
            const part = make("i", {class: kind});
            part.style.setProperty("width", whole ? `${(value / whole) * 100}%` : "0");
            return part;
        }),
    );
export const figure = (...children) => make("td", {class: "n"}, ...children);

export const section = (id, title, text, ...children) =>
    make(
        "section",
        {id, "aria-labelledby": "h-" + id},
        make("header", {}, make("h2", {id: "h-" + id}, title)),
        text ? make("p", {}, text) : null,
        ...children,
    );

/* While the page is printed. Paper has one width, whatever the screen's, and more pixels. */
export const onPaper = () => "paper" in document.documentElement.dataset;
export const PAPER = 680;
const PAPER_PIXELS = 3;

/* Calls draw with the element's width, now and when it changes; with the width of paper while printing. */
export const fitted = (part, draw, paper = PAPER) => {
    let width = 0;
    const fit = () => {
        if (!onPaper() && part.clientWidth > 0 && part.clientWidth !== width) draw((width = part.clientWidth));
    };
    new ResizeObserver(() => setTimeout(fit, 0)).observe(part); /* a new height may add a scroll bar, and so change the width */
    return {draw: () => (onPaper() ? draw(paper) : part.clientWidth > 0 && draw((width = part.clientWidth)))};
};

/* Current colours of the style sheet, for canvases. */
export const colour = name =>
    getComputedStyle(document.documentElement)
        .getPropertyValue("--" + name)
        .trim();

/* A canvas with the screen's resolution; its context uses the page's units. */
export const pixels = (canvas, width, height) => {
    const ratio = Math.max(window.devicePixelRatio || 1, onPaper() ? PAPER_PIXELS : 1);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "11px " + getComputedStyle(document.body).fontFamily;
    return context;
};

/* Redraws when the colours change: the system switches between dark and light, or the page is printed, which is light. */
export const redrawn = draw => {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    window.addEventListener("beforeprint", () => {
        document.documentElement.dataset.paper = "";
        draw();
    });
    window.addEventListener("afterprint", () => {
        delete document.documentElement.dataset.paper;
        draw();
    });
};
