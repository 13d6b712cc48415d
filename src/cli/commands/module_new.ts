/** `preamp module new`: a module that works, its test and its README, in a folder of its own. Never writes over a file. */
import manifest from "../../../deno.json" with { type: "json" };
import { PREFIX } from "../../kernel/mounting/module_checks.ts";
import { didYouMean } from "../../text/did_you_mean.ts";
import type { ModuleType } from "../../sdk/types.ts";
import type { Arguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit.ts";
import { denoJson, isMapped } from "../deno_json.ts";
import { locate } from "../files.ts";
import type { Io } from "../terminal/io.ts";
import { SDK_IMPORTS, writeSdkFiles } from "../sdk_files.ts";
import { fill, type Template, type Words } from "../templates/template.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { UsageError } from "../usage_error.ts";

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
  summary: "Begins a module: mod.ts, mod_test.ts, README.md, and a deno.json where there is none.",
  flags: [
    { name: "dir", value: "FOLDER", help: "where, default ./ID such as ./tool-clock" },
    { name: "sdk", value: "URL", help: "where the SDK's mod.ts is, for editors and tests" },
    ...formatFlags({ help: "text (default), or {id, folder, files}" }),
  ],
  details: () =>
    `What it writes passes \`preamp module validate --strict\` and its own tests, \`deno test\`. Nothing is
overwritten. deno.json says where editors and tests find "preamp": in .preamp/sdk, which is written too
(preamp module types), or in the sources of a program that runs from them; --sdk names another place. A module
that runs gets it from its host.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const [written, name, more] = args.rest;
  const type = typeOf(written);
  if (name === undefined) {
    throw new UsageError(`Cannot begin a module: it needs a name: module new ${type} clock`);
  }
  if (more !== undefined) throw new UsageError(`Cannot use ${JSON.stringify(more)}: a module has one name`);
  const words = wordsOf(type, name);
  const dir = (args.value("dir") ?? words.id).replace(/(?<=.)\/+$/, "");
  const folder = locate(`${dir}/`, io.cwd);
  const template = await TEMPLATES[type]!(); // typeOf() says so
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
    throw new UsageError(`Cannot begin a module: it needs a type: ${types.join(", ")}`);
  }
  if (Object.hasOwn(TEMPLATES, written)) return written as ModuleType; // the table's keys
  const meant = didYouMean(written, types);
  const hint = meant === undefined ? `one of ${types.join(", ")}` : `did you mean ${meant}?`;
  throw new UsageError(`Cannot begin a module of type ${JSON.stringify(written.slice(0, 40))}: ${hint}`);
}

/** `clock` and `tool-clock` are the same tool. */
function wordsOf(type: ModuleType, written: string): Words {
  const prefix = `${PREFIX[type]}-`;
  const name = written.startsWith(prefix) ? written.slice(prefix.length) : written;
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || name.length > 48) {
    throw new UsageError(
      `Cannot name a module ${JSON.stringify(written.slice(0, 60))}: ` +
        "take small letters, digits and single hyphens, a letter first, at most 48: such as clock or city-weather",
    );
  }
  return { id: prefix + name, name: name.replaceAll("-", "_") };
}

/** The executable writes the SDK beside the module; a program that runs from its sources is the SDK. */
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
    "@cfworker/json-schema": imports["@cfworker/json-schema"], // the loop's own: an import map has no other place for it
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
      }: there already; nothing was written: take another --dir`,
    );
  }
  try {
    await Deno.mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) {
      await Deno.writeTextFile(new URL(file, folder), text, { createNew: true });
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`Cannot write into ${JSON.stringify(dir)}: ${why}`, { cause: error });
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

/** How this program is started, from any folder. */
function program(): string {
  if (Deno.build.standalone) return "preamp";
  const main = new URL("../../../main.ts", import.meta.url);
  return `deno run -A ${main.protocol === "file:" ? decodeURIComponent(main.pathname) : main.href}`;
}
