/** `preamp module new`: creates a working module with a test and a README. Never overwrites a file. */
import { PREFIX } from "../../../app/validation/export_checks.ts";
import type { ModuleType } from "../../../sdk/types.ts";
import { adviceFor, type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import {
  denoJson,
  folderUrl,
  isMapped,
  program,
  readTemplate,
  sdkImports,
  type Words,
  writeNew,
  writeSdkFiles,
} from "../../author_files.ts";
import type { Answer, Command } from "../../commands.ts";
import type { Io } from "../../terminal/io.ts";

/** Types of modules; each is the name of its template's folder. */
const TYPES: readonly ModuleType[] = ["tool", "provider", "hook", "orchestrator", "context"];

/** Files of a module. */
const FILES = ["mod.ts", "mod_test.ts", "README.md"];

export const command: Command = {
  usage: "module new <tool|provider|hook|orchestrator|context> <name>",
  summary: "Creates a module: mod.ts, mod_test.ts, README.md, and deno.json if there is no deno.json yet.",
  flags: [
    { name: "dir", value: "FOLDER", help: "folder, default the id, such as ./tool-clock" },
    ...formatFlags({ help: "text (default), or {id, folder, files}" }),
  ],
  details: () =>
    `The new module passes \`preamp module validate --strict\` and its own tests, \`deno test\`. Existing files are never
overwritten. deno.json maps "preamp" for editors and tests: to .preamp/sdk, which the executable writes too
(preamp module types), or to the sources of a program that runs from its sources.
A running module gets "preamp" from the runtime.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const [written, name, more] = args.rest;
  const type = typeOf(written);
  if (name === undefined) {
    throw new UsageError(`Cannot create a module without a name; write: preamp module new ${type} clock`);
  }
  if (more !== undefined) throw new UsageError(`Cannot use ${JSON.stringify(more)}: a module has one name`);
  const words = wordsOf(type, name);
  const dir = (args.value("dir") ?? words.id).replace(/(?<=.)\/+$/, "");
  const url = folderUrl(dir, io);
  const files = await readTemplate(type, FILES, words);
  const mapped = await isMapped(url);
  if (!mapped) files["deno.json"] = denoJson(sdkImports(), "./mod.ts");
  await writeNew(url, dir, files);
  const has_types = !mapped && Deno.build.standalone;
  const names = [...Object.keys(files), ...has_types ? [await writeSdkFiles(url)] : []];
  const list = names.map((file) => `  ${dir}/${file}\n`).join("");
  const next = `  cd ${dir}\n  deno test\n  ${program()} module validate --strict .\n`;
  return {
    data: { id: words.id, folder: dir, files: names },
    text: `${words.id} is ready:\n${list}\nNext:\n${next}`,
  };
}

function typeOf(written: string | undefined): ModuleType {
  const list = `the types are ${TYPES.join(", ")}`;
  if (written === undefined) throw new UsageError(`Cannot create a module without a type; ${list}`);
  const type = TYPES.find((type) => type === written);
  if (type) return type;
  const name = JSON.stringify(written.slice(0, 40));
  throw new UsageError(`Cannot create a module of type ${name}: ${adviceFor(written, TYPES, list)}`);
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
