/** `preamp module new`: creates a working module with a test and a README. Never overwrites a file. */
import manifest from "../../../deno.json" with { type: "json" };
import { PREFIX } from "../../kernel/mounting/module_checks.ts";
import { didYouMean } from "../../sdk/did_you_mean.ts";
import type { ModuleType } from "../../sdk/types.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import { locate } from "../paths.ts";
import type { Io } from "../terminal/io.ts";
import { denoJson, isMapped, SDK_IMPORTS, writeSdkFiles } from "../sdk_files.ts";
import { fill, type Template, type Words } from "../templates/template.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";

const TEMPLATES: Readonly<Record<string, () => Promise<Template>>> = {
  tool: async () => (await import("../templates/tool.ts")).template,
  provider: async () => (await import("../templates/provider.ts")).template,
  hook: async () => (await import("../templates/hook.ts")).template,
  orchestrator: async () => (await import("../templates/orchestrator.ts")).template,
  context: async () => (await import("../templates/context.ts")).template,
};

/** The command. */
export const command: Command = {
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
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const [written, name, more] = args.rest;
  const type = typeOf(written);
  if (name === undefined) {
    throw new UsageError(`Cannot create a module without a name; write: preamp module new ${type} clock`);
  }
  if (more !== undefined) throw new UsageError(`Cannot use ${JSON.stringify(more)}: a module has one name`);
  const words = wordsOf(type, name);
  const dir = (args.value("dir") ?? words.id).replace(/(?<=.)\/+$/, "");
  const folder = locate(`${dir}/`, io.cwd);
  const template = await TEMPLATES[type]!(); // typeOf() returns a key of the table
  const files: Record<string, string> = {
    "mod.ts": fill(template.module, words),
    "mod_test.ts": fill(template.test, words),
    "README.md": fill(readme(template), words),
  };
  const sdk = args.value("sdk");
  const mapped = await isMapped(folder);
  if (!mapped) files["deno.json"] = denoJson(sdk === undefined ? ownImports() : importsAt(sdk, io));
  await writeNew(folder, dir, files);
  const own = !mapped && sdk === undefined && Deno.build.standalone;
  if (own) await writeSdkFiles(folder);
  const names = [...Object.keys(files), ...own ? [".preamp/sdk/"] : []];
  if (json) {
    writeJson(io, { id: words.id, folder: dir, files: names });
    return EXIT.done;
  }
  const list = names.map((file) => `  ${dir}/${file}\n`).join("");
  const next = `  cd ${dir}\n  deno test\n  ${program()} module validate --strict .\n`;
  io.out.write(`${words.id} is ready:\n${list}\nNext:\n${next}`);
  return EXIT.done;
}

function typeOf(written: string | undefined): ModuleType {
  const types = Object.keys(TEMPLATES);
  if (written === undefined) {
    throw new UsageError(`Cannot create a module without a type; the types are ${types.join(", ")}`);
  }
  if (Object.hasOwn(TEMPLATES, written)) return written as ModuleType; // the table's keys
  const meant = didYouMean(written, types);
  const hint = meant === undefined ? `the types are ${types.join(", ")}` : `did you mean ${meant}?`;
  throw new UsageError(`Cannot create a module of type ${JSON.stringify(written.slice(0, 40))}: ${hint}`);
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

/** Returns the imports of the SDK: the files written beside the module, or the sources that this program runs from. */
function ownImports(): Record<string, string> {
  return Deno.build.standalone ? SDK_IMPORTS : sourceImports(new URL("../../sdk/mod.ts", import.meta.url));
}

function importsAt(sdk: string, io: Io): Record<string, string> {
  const isUrl = /^[a-z][a-z0-9+.-]+:/i.test(sdk) && URL.canParse(sdk);
  return sourceImports(isUrl ? new URL(sdk) : locate(sdk, io.cwd));
}

function sourceImports(mod: URL): Record<string, string> {
  const { imports } = manifest;
  return {
    preamp: mod.href,
    ...Object.fromEntries(
      ["loop", "context", "testing"].map((part) => [`preamp/${part}`, new URL(`${part}.ts`, mod).href]),
    ),
    zod: imports.zod,
    "@cfworker/json-schema": imports["@cfworker/json-schema"], // imported by the loop; an import map has no scopes here
  };
}

async function writeNew(folder: URL, dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  const there: string[] = [];
  for (const file of Object.keys(files)) {
    const exists = await Deno.lstat(new URL(file, folder)).then(() => true, () => false);
    if (exists) there.push(file);
  }
  if (there.length > 0) {
    throw new UsageError(
      `Cannot write ${dir}/${
        there.join(`, ${dir}/`)
      }: it already exists, and nothing was written; use another --dir`,
    );
  }
  try {
    await Deno.mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) {
      await Deno.writeTextFile(new URL(file, folder), text, { createNew: true });
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`Cannot write into ${JSON.stringify(dir)}: ${reason}`, { cause: error });
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
