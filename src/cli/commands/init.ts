/** `preamp init`: writes a plan, a tool of one's own with a test, and `.env.example` into a folder. */
import { type Arguments, formatFlags, UsageError } from "../arguments.ts";
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
  flags: formatFlags({ help: "text (default), or {folder, files}" }),
  details: () =>
    `Existing files are never overwritten: when plan.yaml, .env.example or the tool is there, nothing is written.
A deno.json or .gitignore that is there stays as it is. preamp module new creates modules of other types.
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
