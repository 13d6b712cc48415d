import { parseVariables } from "../../../src/cli/folder/env_file.ts";
import { readArguments } from "../../../src/cli/arguments.ts";
import { readSettings } from "../../../src/cli/settings.ts";
import { trustFolder } from "../../../src/cli/folder/folder.ts";
import { assertEquals } from "../../assert.ts";
import { strangeFolder } from "../../support/strange_folder.ts";

Deno.test("parseVariables() never returns a variable of the program, of its screen, of proxies or of starting programs", async () => {
  const refused = [
    "PREAMP_CONFIG",
    "preamp_trust",
    "PI_TUI_WRITE_LOG",
    "HTTP_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "NO_PROXY",
    "MY_PROXY",
    "LD_PRELOAD",
    "DENO_DIR",
    "NODE_OPTIONS",
    "GIT_SSH_COMMAND",
    "PATH",
    "HOME",
  ];
  const allowed = { OPENAI_API_KEY: "k", PIPELINE: "1", PROXY_NAME: "2", QUOTED: "a b" };
  const text = [
    ...refused.map((name) => `${name}=x`),
    "export OPENAI_API_KEY=k",
    "PIPELINE=1",
    "PROXY_NAME=2",
    'QUOTED="a b" # comment',
    "not a line",
  ].join("\n");
  const read = await parseVariables(text);
  assertEquals(Object.fromEntries(read.variables), allowed);
  assertEquals(read.refused, refused.toSorted());
});

Deno.test("a trusted .env sets what is not set, for plans and keys only: not in this process, and no setting", async () => {
  await using folder = await strangeFolder({ ".env": "A_NAME_OF_A_TEST=file\nB=file\nPREAMP_MODEL=a/b\n" });
  const read = async (variables: boolean) =>
    await readSettings(readArguments([], []), folder.io({ env: { B: "" } }), { variables });
  assertEquals((await read(true)).env("A_NAME_OF_A_TEST"), undefined);
  await trustFolder(folder.url, folder.io());
  const { env, policy, warnings } = await read(true);
  assertEquals([env("A_NAME_OF_A_TEST"), env("B"), policy.model], ["file", "", ""]);
  assertEquals(warnings, ["The variable PREAMP_MODEL of .env is ignored: set it in the shell"]);
  assertEquals(Deno.env.get("A_NAME_OF_A_TEST"), undefined);
  assertEquals((await read(false)).env("A_NAME_OF_A_TEST"), undefined);
});
