/**
 * `preamp init`: writes a plan, a tool of one's own with a test, and `.env.example` into a folder; with
 * `--deploy`, an agent endpoint.
 */
import { filePath } from "../../settings/paths.ts";
import { type Arguments, formatFlags, readArguments, UsageError } from "../arguments.ts";
import {
  denoJson,
  folderUrl,
  isMapped,
  isThere,
  program,
  readTemplate,
  sdkImports,
  writeNew,
  writeSdkFiles,
} from "../author_files.ts";
import type { Answer, Command } from "../commands.ts";
import { shellWord } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";

export const command: Command = {
  usage: "init [flags] [folder]",
  summary: "Writes a plan, a tool of your own with a passing test, and .env.example; default: this folder.",
  flags: [
    { name: "deploy", help: "write an agent endpoint for deno serve and Deno Deploy instead" },
    ...formatFlags({ help: "text (default), or {folder, files}" }),
  ],
  details: () =>
    `Existing files are never overwritten: when plan.yaml, .env.example or the tool is there, nothing is written.
A deno.json or .gitignore that is there stays as it is. preamp module new creates modules of other types.
With --deploy it writes plan.yaml, agents/, main.ts, preamp.yaml, deno.json, README.md and vendor/preamp, the source of this
program (5 MB). Files that are there stay as they are, but for vendor/preamp: repeat the command for a newer program.
`,
  max_arguments: 1,
  run,
};

/** Endings of names that are meant as files. */
const FILE_ENDING = /\.(?:ya?ml|jsonc?|[cm]?[jt]sx?|py|toml|md|txt)$/i;

/** @throws {UsageError} for an argument that names a file or a URL. */
async function checkFolder(dir: string, url: URL): Promise<void> {
  const refuse = (fact: string) => new UsageError(`Cannot use ${JSON.stringify(dir)}: ${fact}`);
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(dir)) {
    throw refuse("init downloads nothing; name a folder of this machine");
  }
  const info = await Deno.stat(new URL(url.href.slice(0, -1))).catch(() => null); // it may not exist
  if (info?.isDirectory || info === null && !FILE_ENDING.test(dir)) return;
  const folder = dir.replace(FILE_ENDING, "");
  throw refuse(
    `init takes a folder, into which it writes plan.yaml, a tool and a test; write preamp init, or preamp init ${
      shellWord(folder === dir ? `${dir}-agent` : folder)
    }`,
  );
}

async function run(args: Arguments, io: Io): Promise<Answer> {
  const dir = (args.rest[0] ?? ".").replace(/(?<=.)\/+$/, "");
  const url = folderUrl(dir, io);
  await checkFolder(dir, url);
  if (args.has("deploy")) return await initDeploy(dir, url, io);
  const tool = await readTemplate("tool", ["mod.ts", "mod_test.ts"], { id: "tool-greet", name: "greet" });
  const files = {
    ...await readTemplate("project", ["plan.yaml", ".env.example"]),
    ...Object.fromEntries(Object.entries(tool).map(([file, text]) => [`tools/greet/${file}`, text])),
  };
  const imports = sdkImports();
  const mapped = await isMapped(url);
  const has_config = await isThere(new URL("deno.json", url));
  if (!mapped && !has_config) files["deno.json"] = denoJson(imports);
  if (!await isThere(new URL(".gitignore", url))) {
    Object.assign(files, await readTemplate("project", [".gitignore"]));
  }
  await writeNew(url, dir, files);
  const has_types = !mapped && Deno.build.standalone;
  const names = [...Object.keys(files), ...has_types ? [await writeSdkFiles(url)] : []];
  const list = names.map((file) => `  ${dir === "." ? "" : `${dir}/`}${file}\n`).join("");
  const advice = !mapped && has_config
    ? `Add this to deno.json:\n${JSON.stringify({ imports }, null, 2)}\n\n`
    : "";
  const enter = dir === "." ? "" : `  cd ${dir}\n`;
  const next = `${enter}  ${program()} run -p plan.yaml "Greet Ada"\n  deno test\n`;
  return { data: { folder: dir, files: names }, text: `Written:\n${list}\n${advice}Next:\n${next}` };
}

/** Writes an agent endpoint into a folder. Files that are there stay. */
async function initDeploy(dir: string, url: URL, io: Io): Promise<Answer> {
  const { checkSources, deployConfig, deployLock, OWN_FOLDER, writeOwnSources } = await import(
    "../deploy_files.ts"
  );
  checkSources();
  const all = {
    ...await readTemplate("deploy", ["plan.yaml", "preamp.yaml", "main.ts", "README.md"]),
    ...await readTemplate("project", [".gitignore"]),
    "deno.json": await deployConfig(),
    ...await deployLock(),
  };
  const missing: Record<string, string> = {};
  for (const [file, text] of Object.entries(all)) {
    if (!await isThere(new URL(file, url))) missing[file] = text;
  }
  await writeOwnSources(url);
  await writeNew(url, dir, missing);
  const agent = "agents/default.yaml";
  const has_agent = await isThere(new URL(agent, url));
  if (!has_agent) {
    const { command } = await import("./plan/vendor.ts");
    const words = ["--inline", filePath(new URL("plan.yaml", url)), "-o", filePath(new URL(agent, url))];
    await command.run(readArguments(words, command.flags), io);
  }
  const files = [...Object.keys(missing), ...has_agent ? [] : [agent], OWN_FOLDER];
  const list = files.map((file) => `  ${dir === "." ? "" : `${dir}/`}${file}\n`).join("");
  const kept = Object.keys(all).filter((file) => !Object.hasOwn(missing, file));
  const notes = kept.length === 0 ? "" : `Kept as they are: ${kept.join(", ")}\n`;
  const enter = dir === "." ? "" : `  cd ${dir}\n`;
  return {
    data: { folder: dir, files },
    text: `Written:\n${list}${notes}\nNext:\n${enter}  export PREAMP_API_KEYS=$(openssl rand -hex 16)
  deno task start &
  curl --retry 9 --retry-connrefused --json '{"prompt": "What is 6 × 7?"}' -H "Authorization: Bearer $PREAMP_API_KEYS" ${ADDRESS}/v1/runs
`,
  };
}

/** Address of the task `start` of an agent endpoint. */
const ADDRESS = "http://127.0.0.1:8000";
