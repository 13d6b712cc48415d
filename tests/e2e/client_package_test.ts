/** The package of `deno task release`, installed and used in Node. */
import { assertEquals } from "../assert.ts";
import { startProxy } from "../browser/loopback_proxy.ts";
import { ASKING } from "../browser/runs.ts";
import { Tail } from "../support/child_process.ts";
import { inFolder } from "../support/folder.ts";
import { ROOT, startServer } from "./program.ts";

/** Runs in Node; writes a line when it waits for a person, and at the end what it has seen. */
const PROGRAM = `
import { PreampApiError, PreampClient } from "preamp/client";

const { url, key, plan } = JSON.parse(process.argv[1]);
const prompt = "What is 6 × 7?";
const seen = { seqs: [], text: "", connections: [] };
let run_id;
async function onConnection(connected) {
  seen.connections.push(connected);
  if (!connected) return;
  const [approval] = (await client.listApprovals(run_id)).data;
  await client.answer(approval, "allow");
}
const client = new PreampClient({ url, key, onConnection });
for await (const entry of client.stream({ prompt, plan })) {
  seen.seqs.push(entry.seq);
  if (entry.event === "content_block:delta") seen.text += entry.data.delta;
  if (entry.event !== "approval:required") continue;
  run_id = entry.run_id;
  console.log("waiting");
}
const { status, output_text } = await client.run({ prompt, plan: { ...plan, hooks: [] } });
const error = await client.getRun("run_none").catch((error) => error);
const refused = [error instanceof PreampApiError, error.code];
console.log(JSON.stringify({ ...seen, run: [status, output_text], refused }));
`;

/** Uses the types of the package. */
const USE = `
import { type Entry, PreampClient, type Run } from "preamp/client";
const client = new PreampClient({ url: "http://127.0.0.1" });
export const run: Promise<Run> = client.run({ prompt: "hello" });
export const entries: AsyncIterable<Entry> = client.stream("run_1");
// @ts-expect-error: a prompt is required
client.start({});
`;

const has_node = await new Deno.Command("node", { args: ["--version"], stdout: "null" }).output()
  .then(() => true, () => false);

Deno.test({
  name: "the npm package of the client runs, streams over a cut connection and answers an approval in Node",
  ignore: !has_node,
  fn: () =>
    inFolder(async (folder) => {
      const installed = `${folder}/node_modules/preamp`;
      await Deno.mkdir(installed, { recursive: true });
      await Deno.writeTextFile(`${installed}/notes`, "mine");
      const args = ["run", "-A", `${ROOT}.tasks/release.ts`, installed];
      assertEquals((await new Deno.Command(Deno.execPath(), { args, cwd: ROOT }).output()).code, 0);
      const names = (await Array.fromAsync(Deno.readDir(installed))).map(({ name }) => name);
      assertEquals(
        names.sort(),
        [
          "LICENSE",
          "README.md",
          ...["mod", "objects", "transcript", "transcript_items", "transcript_markdown"].flatMap((name) => [
            `${name}.d.ts`,
            `${name}.js`,
          ]),
          "notes",
          "package.json",
        ].sort(),
      );
      await Deno.writeTextFile(`${folder}/used.ts`, USE);
      const check = new Deno.Command(Deno.execPath(), { args: ["check", "--quiet", "used.ts"], cwd: folder });
      await Deno.writeTextFile(`${folder}/package.json`, `{"dependencies":{"preamp":"*"}}`);
      assertEquals((await check.output()).code, 0);

      await using server = await startServer();
      await using proxy = startProxy(server.url);
      const input = JSON.stringify({ url: proxy.url, key: server.key, plan: ASKING });
      await using node = new Deno.Command("node", {
        args: ["--input-type=module", "--eval", PROGRAM, input],
        cwd: folder,
        stdin: "null",
        stdout: "piped",
      }).spawn();
      const stdout = new Tail(node.stdout);
      await stdout.until((text) => text.includes("waiting"));
      proxy.cut();
      const written = await stdout.until((text) => text.trimEnd().endsWith("}"));
      const { seqs, ...seen } = JSON.parse(written.replace("waiting\n", ""));
      assertEquals(seen, {
        text: "6 × 7 is 42.",
        connections: [false, true],
        run: ["completed", "6 × 7 is 42."],
        refused: [true, "not_found"],
      });
      assertEquals(seqs, seqs.map((_: number, index: number) => index + 1));
      assertEquals((await node.status).code, 0);
    }),
});
