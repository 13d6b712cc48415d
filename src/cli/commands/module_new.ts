/**
 * `preamp module new`: creates a working module with a test and a README. Never overwrites a file.
 *
 * `preamp module types`: writes the SDK for module authors, its sources and the packages they import, into
 * `.preamp/sdk` of a folder. The compile task includes these files in the executable as one. A program that
 * runs from its sources does not need them.
 */
import manifest from "../../../deno.json" with { type: "json" };
import { PREFIX } from "../../app/validation/export_checks.ts";
import { isObject } from "../../sdk/json.ts";
import type { ModuleType } from "../../sdk/types.ts";
import { adviceFor, type Arguments, formatFlags, UsageError } from "../arguments.ts";
import type { Answer, Commands } from "../commands.ts";
import { locate, readOptional, writeFailure } from "../paths.ts";
import type { Io } from "../terminal/io.ts";

/** A template of a module: texts with `__ID__` and `__NAME__` in them. */
export interface Template {
  /** Text of `mod.ts`. */
  module: string;
  /** Text of `mod_test.ts`. */
  test: string;
  /** A sentence for README.md that says what the module does. */
  about: string;
  /** Its entry in a plan, for README.md. */
  plan: string;
  /** Config keys for README.md. */
  config: readonly (readonly [key: string, form: string, meaning: string])[];
}

const TEMPLATES: Readonly<Record<ModuleType, () => Promise<{ template: Template }>>> = {
  tool: () => import("../templates/tool.ts"),
  provider: () => import("../templates/provider.ts"),
  hook: () => import("../templates/hook.ts"),
  orchestrator: () => import("../templates/orchestrator.ts"),
  context: () => import("../templates/context.ts"),
};

export const commands: Commands = {
  "module new": {
    usage: "module new <tool|provider|hook|orchestrator|context> <name>",
    summary: "Creates a module: mod.ts, mod_test.ts, README.md, and deno.json if there is no deno.json yet.",
    flags: [
      { name: "dir", value: "FOLDER", help: "folder, default the id, such as ./tool-clock" },
      { name: "sdk", value: "URL", help: "URL of the SDK's mod.ts, for editors and tests" },
      ...formatFlags({ help: "text (default), or {id, folder, files}" }),
    ],
    details: () =>
      `The new module passes \`preamp module validate --strict\` and its own tests, \`deno test\`. Existing files are never
overwritten. deno.json maps "preamp" for editors and tests: to .preamp/sdk, which the executable writes too
(preamp module types), or to the sources of a program that runs from its sources; --sdk names another place.
A running module gets "preamp" from the runtime.
`,
    run: runNew,
  },
  "module types": {
    usage: "module types [folder]",
    summary:
      "Writes the SDK's types and test kit into .preamp/sdk, and a deno.json if there is no deno.json yet.",
    flags: formatFlags({ help: "text (default), or {folder, written, imports}" }),
    details: () =>
      `Run it with the executable in a cloned folder, and again after an update of the program. Git ignores .preamp/sdk.
deno.json maps "preamp", "preamp/base", "preamp/loop", "preamp/context", "preamp/provider", "preamp/testing" and "zod" to its
files; no network is needed.
`,
    max_arguments: 1,
    run: runTypes,
  },
};

async function runNew(args: Arguments, io: Io): Promise<Answer> {
  const [written, name, more] = args.rest;
  const type = typeOf(written);
  if (name === undefined) {
    throw new UsageError(`Cannot create a module without a name; write: preamp module new ${type} clock`);
  }
  if (more !== undefined) throw new UsageError(`Cannot use ${JSON.stringify(more)}: a module has one name`);
  const words = wordsOf(type, name);
  const folder = args.value("dir") ?? words.id;
  const dir = folder.replace(/(?<=.)\/+$/, "");
  const url = folderUrl(folder, io);
  const { template } = await TEMPLATES[type]();
  const files: Record<string, string> = {
    "mod.ts": fill(template.module, words),
    "mod_test.ts": fill(template.test, words),
    "README.md": fill(readme(template), words),
  };
  const sdk = args.value("sdk");
  const mapped = await isMapped(url);
  if (!mapped) files["deno.json"] = denoJson(sdk === undefined ? ownImports() : importsAt(sdk, io));
  await writeNew(url, dir, files);
  const has_types = !mapped && sdk === undefined && Deno.build.standalone;
  if (has_types) await writeSdkFiles(url);
  const names = [...Object.keys(files), ...has_types ? [".preamp/sdk/"] : []];
  const list = names.map((file) => `  ${dir}/${file}\n`).join("");
  const next = `  cd ${dir}\n  deno test\n  ${program()} module validate --strict .\n`;
  return {
    data: { id: words.id, folder: dir, files: names },
    text: `${words.id} is ready:\n${list}\nNext:\n${next}`,
  };
}

function typeOf(written: string | undefined): ModuleType {
  const types = Object.keys(TEMPLATES);
  const list = `the types are ${types.join(", ")}`;
  if (written === undefined) throw new UsageError(`Cannot create a module without a type; ${list}`);
  if (types.includes(written)) return written as ModuleType; // the table's keys
  const name = JSON.stringify(written.slice(0, 40));
  throw new UsageError(`Cannot create a module of type ${name}: ${adviceFor(written, types, list)}`);
}

/** The values of the placeholders. */
interface Words {
  /** Id, such as `tool-clock`. */
  id: string;
  /** Name in snake_case, such as `clock`; for a tool the name that models use. */
  name: string;
}

/** Returns id and name of the module; `clock` and `tool-clock` mean the same tool. */
function wordsOf(type: ModuleType, written: string): Words {
  const prefix = `${PREFIX[type]}-`;
  const name = written.startsWith(prefix) ? written.slice(prefix.length) : written;
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || name.length > 48) {
    throw new UsageError(
      `Cannot name a module ${JSON.stringify(written.slice(0, 60))}: ` +
        "use lower-case letters, digits and single hyphens, a letter first, at most 48 characters, such as city-weather",
    );
  }
  return { id: prefix + name, name: name.replaceAll("-", "_") };
}

/** Returns a text with its placeholders replaced. */
function fill(text: string, { id, name }: Words): string {
  return text.replaceAll("__ID__", id).replaceAll("__NAME__", name);
}

function folderUrl(path: string, { cwd }: Io): URL {
  return locate(`${path.replace(/(?<=.)\/+$/, "")}/`, cwd);
}

async function writeNew(folder: URL, dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  const there: string[] = [];
  for (const file of Object.keys(files)) {
    const exists = await Deno.lstat(new URL(file, folder)).then(() => true, () => false);
    if (exists) there.push(`${dir}/${file}`);
  }
  if (there.length > 0) {
    const advice = "it already exists, and nothing was written; use another --dir";
    throw new UsageError(`Cannot write ${there.join(", ")}: ${advice}`);
  }
  try {
    await Deno.mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) {
      await Deno.writeTextFile(new URL(file, folder), text, { createNew: true });
    }
  } catch (error) {
    throw writeFailure(dir, error);
  }
}

function readme({ about, plan, config }: Template): string {
  const keys = config.map(([key, form, meaning]) => `- \`${key}\` (${form}): ${meaning}`).join("\n");
  return `# __ID__

${about}

\`\`\`yaml
${plan}
\`\`\`

Config:

${keys}

\`\`\`sh
deno test
preamp module validate --strict .
\`\`\`
`;
}

/** Returns the command that starts this program from any folder. */
function program(): string {
  if (Deno.build.standalone) return "preamp";
  const main = new URL("../../../main.ts", import.meta.url);
  return `deno run -A ${main.protocol === "file:" ? decodeURIComponent(main.pathname) : main.href}`;
}

async function runTypes({ rest: [name = "."] }: Arguments, io: Io): Promise<Answer> {
  if (!Deno.build.standalone) {
    const text =
      "Nothing to write: this program runs from its sources, and module new maps them in deno.json.\n";
    return { data: { folder: name, written: false, imports: {} }, text };
  }
  const folder = folderUrl(name, io);
  const config = new URL("deno.json", folder);
  const has_config = await readOptional(config, "deno.json") !== undefined;
  try {
    await writeSdkFiles(folder);
    if (!has_config) await Deno.writeTextFile(config, denoJson(SDK_IMPORTS), { createNew: true });
  } catch (error) {
    throw writeFailure(name, error);
  }
  const advice = await isMapped(folder)
    ? ""
    : `Add this to deno.json:\n${JSON.stringify({ imports: SDK_IMPORTS }, null, 2)}\n`;
  const text = `The SDK is in ${name === "." ? "" : `${name}/`}${SDK_FOLDER.slice(0, -1)}\n${advice}`;
  return { data: { folder: name, written: true, imports: SDK_IMPORTS }, text };
}

/** Name of the file in the executable: path → text, as gzipped JSON. */
const SDK_ASSET = "sdk.json.gz";
const SDK_FOLDER = ".preamp/sdk/";

/** The `imports` of a `deno.json` for these files, relative to its folder. */
const SDK_IMPORTS: Readonly<Record<string, string>> = {
  "preamp": `./${SDK_FOLDER}preamp/mod.ts`,
  "preamp/base": `./${SDK_FOLDER}preamp/base.ts`,
  "preamp/loop": `./${SDK_FOLDER}preamp/loop.ts`,
  "preamp/context": `./${SDK_FOLDER}preamp/context.ts`,
  "preamp/provider": `./${SDK_FOLDER}preamp/provider.ts`,
  "preamp/testing": `./${SDK_FOLDER}preamp/testing.ts`,
  "zod": `./${SDK_FOLDER}zod/mod.js`,
};

/** Writes the files into `.preamp/sdk` of a folder and removes those of another version. Git ignores them. */
async function writeSdkFiles(folder: URL): Promise<void> {
  const asset = await Deno.open(new URL(SDK_ASSET, import.meta.url));
  const json = new Response(asset.readable.pipeThrough(new DecompressionStream("gzip")));
  const files: Record<string, string> = await json.json();
  const target = new URL(SDK_FOLDER, folder);
  await Deno.remove(target, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  const all = { ...files, ".gitignore": "*\n", "version": `${manifest.version}\n` };
  for (const [path, text] of Object.entries(all)) {
    const url = new URL(path, target);
    await Deno.mkdir(new URL(".", url), { recursive: true });
    await Deno.writeTextFile(url, text);
  }
}

/** Resolves to whether the nearest deno.json of a folder maps "preamp". */
async function isMapped(folder: URL): Promise<boolean> {
  for (let at = folder;; at = new URL("../", at)) {
    for (const file of ["deno.json", "deno.jsonc"]) {
      const text = await readOptional(new URL(file, at), file).catch(() => undefined); // not readable: treated as absent
      if (text !== undefined) return maps(text);
    }
    if (at.pathname === new URL("../", at).pathname) return false;
  }
}

function maps(config: string): boolean {
  try {
    const { imports } = JSON.parse(config) as { imports?: unknown };
    return isObject(imports) && Object.hasOwn(imports, "preamp");
  } catch {
    return config.includes('"preamp"'); // it has comments or is not JSON: Deno reports that better
  }
}

/** Returns the text of a `deno.json` with these imports. */
function denoJson(imports: Readonly<Record<string, string>>): string {
  const document = { exports: "./mod.ts", imports, exclude: [".preamp"], fmt: { lineWidth: 110 } };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/**
 * Returns the imports of the SDK: the files written beside the module, or the sources that this program runs
 * from.
 */
function ownImports(): Readonly<Record<string, string>> {
  return Deno.build.standalone ? SDK_IMPORTS : sourceImports(new URL("../../sdk/mod.ts", import.meta.url));
}

function importsAt(sdk: string, io: Io): Record<string, string> {
  const isUrl = /^[a-z][a-z0-9+.-]+:/i.test(sdk) && URL.canParse(sdk);
  return sourceImports(isUrl ? new URL(sdk) : locate(sdk, io.cwd));
}

function sourceImports(mod: URL): Record<string, string> {
  const { imports } = manifest;
  const parts = ["base", "loop", "context", "provider", "testing"];
  return {
    preamp: mod.href,
    ...Object.fromEntries(parts.map((part) => [`preamp/${part}`, new URL(`${part}.ts`, mod).href])),
    zod: imports.zod,
    "@cfworker/json-schema": imports["@cfworker/json-schema"], // imported by the loop; an import map has no scopes here
  };
}
