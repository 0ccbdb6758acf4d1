/* Builds the self-contained parts of Oriel's pages, including licences:
 *
 *   node build.mjs bench FILE    the library of the benchmark's page
 *   node build.mjs report FILE   the page of `oriel report`, without data
 *
 * CMake runs it. */
import {createHash} from "node:crypto";
import {existsSync, readFileSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

/* The licences of the packages in a bundle: each text once, with its packages. */
const licences = inputs => {
    const packages = new Set(Object.keys(inputs).map(file => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)).filter(Boolean)
        .map(match => match[1]));
    const texts = new Map();
    for (const name of [...packages].sort()) {
        const text = readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim();
        texts.set(text, [...texts.get(text) || [], name]);
    }
    return [...texts].map(([text, names]) => names.join(", ") + ":\n" + text.replaceAll("*/", "")).join("\n\n");
};

const bundle = async (entry, options) => {
    const result = await build({entryPoints: [join(here, entry)], absWorkingDir: here, bundle: true, minify: true, write: false,
                                metafile: true, format: "iife", target: "es2020", charset: "ascii", ...options});
    return "/*\n" + licences(result.metafile.inputs) + "\n*/\n" + result.outputFiles[0].text.trim();
};

/* Makes code safe inside a script or style element: it must not end the element or begin an HTML comment.  Both sequences occur
 * only in strings, where the added backslash has no effect. */
const inline = text => text.replace(/<(?=\/(script|style)|!--)/gi, "\\x3c");
const digest = text => "'sha256-" + createHash("sha256").update(text, "utf8").digest("base64") + "'";

/* The page's content security policy allows only its own script and style, and no loading. */
const report = async () => {
    const script = inline(await bundle("report/report.js", {}));
    const style = inline(["page.css", "report/report.css", "report/compare.css"].map(name => readFileSync(join(here, name), "utf8")).join("\n"));
    const parts = {POLICY: `default-src 'none'; base-uri 'none'; form-action 'none'; style-src ${digest(style)}; `
                           + `script-src ${digest(script)}`, STYLE: style, SCRIPT: script};
    return readFileSync(join(here, "report/report.html"), "utf8").replace(/@(POLICY|STYLE|SCRIPT)@/g, (_, name) => parts[name]);
};

const [what, file] = process.argv.slice(2);
const makers = {bench: () => bundle("bench.js", {globalName: "library"}), report};
if (!file || !makers[what] || !existsSync(dirname(file))) {
    console.error("usage: node build.mjs bench|report FILE");
    process.exit(2);
}
writeFileSync(file, await makers[what]() + "\n");
