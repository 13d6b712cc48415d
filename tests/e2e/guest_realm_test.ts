/**
 * What a module of a real server finds in its sandbox: built-ins that it may replace, and stacks without the
 * server's files.
 */
import { assert, assertEquals } from "../assert.ts";
import { startServer } from "./program.ts";
import { temporaryFolder } from "../support/folder.ts";

/** Replaces what every message needs, then answers with what it sees of stacks. */
const MODULE = `
const { stringify } = JSON;
Map.prototype.get = () => undefined;
WeakMap.prototype.set = () => undefined;
Array.prototype.push = () => 0;
Promise.prototype.then = function () { return this };
JSON.stringify = () => "replaced";
JSON.parse = () => { throw new Error("replaced") };
Object.keys = () => [];
const seen = [new Error("top").stack];
export async function mount(coordinator) {
  seen[1] = new Error("mount").stack;
  await coordinator.hooks.emit("custom:mounted", {});
  try { await coordinator.mount("nowhere", {}) } catch (error) { seen[2] = error.stack }
  await coordinator.mount("tools", {
    name: "look",
    description: "Looks",
    async execute() {
      try { await coordinator.hooks.emit("custom:looked", {}); coordinator.hooks.register("", null) } catch (error) { seen[3] = error.stack }
      Error.prepareStackTrace = (error, frames) => frames.map((frame) => [frame, frame.getFileName(), frame.getScriptNameOrSourceURL()].join(" ")).join();
      seen[4] = new Error("prepared").stack;
      return stringify(seen);
    },
  });
}`;

const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: { responses: [{ tool_calls: [{ name: "look", arguments: {} }] }, { text: "Looked." }] },
  }],
  tools: [{ module: "tool-look", source: "./look.js" }],
};

Deno.test("a module that replaces built-ins is served, and sees no file of the server", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/look.js`, MODULE);
  await Deno.writeTextFile(`${folder}/look.json`, JSON.stringify(PLAN));
  const config = { store: "memory", plans: `${folder}/` };
  await Deno.writeTextFile(`${folder}/preamp.yaml`, JSON.stringify(config));
  await using server = await startServer(["--config", `${folder}/preamp.yaml`], { cwd: folder });
  const { body } = await server.post("/v1/runs", { plan_ref: "look", prompt: "go" });
  assertEquals([body.status, body.output_text, body.warnings], ["completed", "Looked.", []]);
  assertEquals(body.isolation["tool-look"], "process");
  const { data } = (await server.get(`/v1/runs/${body.id}/events?limit=1000`)).body;
  const post = data.find(({ event }: { event: string }) => event === "tool:post");
  const seen: string[] = JSON.parse(post.data.result.output);
  assertEquals(seen.length, 5);
  assert(seen[0]!.includes("look.js"), seen[0]); // its own frames are there
  for (const text of seen) {
    const others = text.replaceAll(/(?:file:\/\/)?\/[^\s]*look\.js/g, "");
    assert(!/file:|sandbox|root\.[jt]s|deno-compile/.test(others), text);
  }
});
