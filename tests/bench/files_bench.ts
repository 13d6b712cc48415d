/**
 * Files: grep and glob over 100,000 files, compared with `rg` where it is in PATH, else with `grep` and
 * `find`; read and edit in a file of 10 MB.
 *
 *   deno run -A tests/bench/files_bench.ts [rounds]
 */
import type { JsonObject } from "../../src/sdk/types.ts";
import { TestCoordinator } from "../../src/testing/coordinator.ts";
import * as filesystem from "../../modules/tool-filesystem/mod.ts";
import * as search from "../../modules/tool-search/mod.ts";
import { compare, print, report, tableOf } from "./figures.ts";

const FILES = 100_000;
const FILES_OF_A_FOLDER = 100;

const rounds = Number(Deno.args[0] ?? 5);
const folder = await Deno.realPath(await Deno.makeTempDir());
const coordinator = new TestCoordinator({ permissions: { read: [folder], write: [folder] } });
await search.mount(coordinator, {});
await filesystem.mount(coordinator, { dialect: "plain" });
const with_rg = new TestCoordinator({ permissions: { read: [folder], run: ["rg"] } });
await search.mount(with_rg, {});

try {
  writeFiles();
  const has_rg = await found("rg");
  const floor = (program: string, ...args: string[]) => () => started(program, args);
  const content = has_rg
    ? floor("rg", "--no-require-git", "-n", "need[a-z]+ here")
    : floor("grep", "-rnE", "need[a-z]+ here");
  const names = has_rg
    ? floor("rg", "--no-require-git", "--files", "--sortr", "modified", "-g", "*.md")
    : floor("find", ".", "-name", "*.md");
  let edits = 0;
  const ms = await compare(rounds, {
    "grep, 100,000 files": () => call("grep", { pattern: "need[a-z]+ here" }),
    "grep, rg granted": () => call("grep", { pattern: "need[a-z]+ here" }, with_rg),
    "grep, literal": () => call("grep", { pattern: "needle here", literal: true }),
    "their grep": content,
    "glob, newest first": () => call("glob", { pattern: "*.md" }),
    "their glob": names,
    "read in 10 MB": () => call("read", { path: "large.txt", offset: 50_000, limit: 100 }),
    "edit in 10 MB": () =>
      call("edit", { path: "large.txt", old_string: `<${edits}>`, new_string: `<${++edits}>` }),
  });
  const other = has_rg ? "rg" : "grep and find";
  const rows = Object.entries(ms).map(([name, time]) => [name.replace("their", other), time]);
  print(tableOf(["", "ms"], rows));
  report("files", { rounds, other, ms });
} finally {
  await Deno.remove(folder, { recursive: true });
}

function writeFiles(): void {
  const text = "const value = compute(argument, 42);\nexport function name() { return value; }\n";
  for (let at = 0; at < FILES; at++) {
    const own = `${folder}/${Math.floor(at / FILES_OF_A_FOLDER) % 50}/${Math.floor(at / FILES_OF_A_FOLDER)}`;
    if (at % FILES_OF_A_FOLDER === 0) Deno.mkdirSync(own, { recursive: true });
    const needle = at % 10_000 === 7 ? "needle here\n" : "";
    Deno.writeTextFileSync(`${own}/${at}.${at % 2 ? "ts" : "md"}`, text.repeat(10 + at % 30) + needle);
  }
  Deno.writeTextFileSync(`${folder}/.gitignore`, "node_modules/\n*.log\nbuild/\n*.txt\n");
  const line = "0123456789abcdef".repeat(6);
  Deno.writeTextFileSync(`${folder}/large.txt`, "<0>\n" + `${line}\n`.repeat(100_000));
}

async function call(tool: string, input: JsonObject, { tools } = coordinator): Promise<void> {
  const result = await tools[tool]!.execute(input);
  if (typeof result !== "string") throw new Error(JSON.stringify(result));
}

async function found(program: string): Promise<boolean> {
  return await started(program, ["--version"]).then(() => true, () => false);
}

async function started(program: string, args: readonly string[]): Promise<void> {
  await new Deno.Command(program, { args: [...args], cwd: folder, stdin: "null" }).output();
}
