import { AllowedCalls } from "../../../src/cli/chat/allowed.ts";
import { TrustRecords } from "../../../src/cli/folder/trust_records.ts";
import type { Approval } from "../../../src/runs/types.ts";
import { assertEquals } from "../../assert.ts";
import { temporaryFolder } from "../../support/folder.ts";

const asked = (command: string) => ({ tool_name: "bash", tool_input: { command } }) as unknown as Approval; // what is read

Deno.test("rules of a folder are kept with what is trusted there, those of a conversation are not, and both can be taken back", async () => {
  await using home = await temporaryFolder();
  await using folder = await temporaryFolder();
  const home_url = new URL(`file://${home.path}/`), workspace = new URL(`file://${folder.path}/`);
  const path = await Deno.realPath(folder.path);
  const records = new TrustRecords(home_url);
  const before = {
    folder: path,
    decided_at: "2026-01-01T00:00:00.000Z",
    trusted: { a: "d" },
    refused: {},
    explained: {},
  };
  await records.write(before);
  const first = await AllowedCalls.open(home_url, workspace);
  await first.add("bash:git log *", "folder");
  await first.add("bash:ls *", "conversation");
  assertEquals([first.allowedBy(asked("git log")), first.allowedBy(asked("ls"))], [
    "bash:git log *",
    "bash:ls *",
  ]);
  assertEquals(
    first.allowedBy({ ...asked("ls"), limit: {} } as unknown as Approval),
    undefined,
    "a limit is no call",
  );
  const later = await AllowedCalls.open(home_url, workspace);
  assertEquals(later.rules, [{ rule: "bash:git log *", scope: "folder" }]);
  const record = await records.read(path);
  assertEquals([record.trusted, record.allowed], [{ a: "d" }, ["bash:git log *"]]);
  await later.remove(later.rules[0]!);
  assertEquals((await AllowedCalls.open(home_url, workspace)).rules, []);
  assertEquals(
    (await AllowedCalls.open(home_url, new URL(`file://${home.path}/`))).rules,
    [],
    "another folder",
  );
});

Deno.test("a record that is written by hand allows what is a rule, and without a home nothing is kept", async () => {
  await using home = await temporaryFolder();
  await using folder = await temporaryFolder();
  const home_url = new URL(`file://${home.path}/`), workspace = new URL(`file://${folder.path}/`);
  const path = await Deno.realPath(folder.path);
  const record = { folder: path, decided_at: "x", trusted: {}, refused: {}, explained: {} };
  const records = new TrustRecords(home_url);
  await records.write({ ...record, allowed: ["", "bash:", "bash:ls"] });
  assertEquals((await AllowedCalls.open(home_url, workspace)).rules.map(({ rule }) => rule), ["bash:ls"]);
  await records.write({ ...record, allowed: [1] as unknown as string[] });
  assertEquals((await AllowedCalls.open(home_url, workspace)).rules, [], "as if nothing had been decided");
  assertEquals((await AllowedCalls.open(null, workspace)).keeps_folder, false);
  assertEquals((await AllowedCalls.open(home_url, null)).keeps_folder, false);
});
