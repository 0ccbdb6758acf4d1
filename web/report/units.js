/* Formats figures: three digits and a unit. */
const digits = value => (value >= 99.95 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString());

const scaled = (value, step, units) => {
    let place = 0;
    while (place < units.length - 1 && value >= step * 0.9995) {
        value /= step;
        place++;
    }
    return `${digits(value)} ${units[place]}`;
};

export const duration = ns =>
    ns === 0 ? "0" : ns < 60e9 ? scaled(ns, 1000, ["ns", "µs", "ms", "s"]) : `${digits(ns / 60e9)} min`;
export const size = bytes => scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
export const count = value => Math.round(value).toLocaleString("en");
export const percent = share => (share > 0 && share < 0.001 ? "< 0.1 %" : `${digits(share * 100)} %`);
export const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/* A time of the run, with enough digits for a span. */
export const moment = (ns, span) => {
    const [unit, name] = ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const places = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / Math.max(span, 1))) + 2));
    return `${(ns / unit).toFixed(places)} ${name}`;
};
