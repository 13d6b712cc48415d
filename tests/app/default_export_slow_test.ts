/** A module without `mount`: its default export is mounted. A name that the SDK lacks is an error. */
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { runWithFiles, TIERS } from "../support/own_modules.ts";

const SHOUT = `
import { defineTool, z } from "preamp";

export default defineTool({
  name: "shout",
  description: "Upper case.",
  input: z.object({ text: z.string() }),
  execute: ({ text }) => text.toUpperCase(),
});
`;
const COUNT = `
let calls = 0;
export default { events: ["tool:pre"], handler: () => { console.log("call " + ++calls); } };
`;
const responses = [{ tool_calls: [{ name: "shout", arguments: { text: "hello" } }] }, { text: "Done." }];
const providers = [{ module: "provider-mock", config: { responses } }];
const tools = [{ module: "tool-shout", source: "./shout.js" }];

for (const tier of TIERS) {
  Deno.test(`a default export is mounted as the module of its type in tier ${tier}`, async () => {
    const files = { "shout.js": SHOUT, "count.js": COUNT };
    const hooks = [{ module: "hooks-count", source: "./count.js" }];
    const { run, entries, logged } = await runWithFiles(tier, files, { providers, tools, hooks });
    assertEquals([run.status, run.warnings], ["completed", []]);
    const result = entries.find(({ event }) => event === "tool:post")?.data.result;
    assertEquals(result, { success: true, output: "HELLO", error: null });
    assertEquals(logged.some(({ facts }) => JSON.stringify(facts).includes("call 1")), true);
  });

  Deno.test(`a name that preamp does not export is refused with the nearest one in tier ${tier}`, async () => {
    const files = { "shout.js": SHOUT.replaceAll("defineTool", "defineTol") };
    const { message } = await assertRejects(() => runWithFiles(tier, files, { providers, tools }));
    assertMatch(message, /"preamp" has no export defineTol; did you mean defineTool\?/);
    assertMatch(message, /shout\.js:4:\d+/);
  });
}

Deno.test("a part of the SDK that does not exist is refused with the nearest one", async () => {
  const files = { "shout.js": SHOUT.replace('"preamp"', '"preamp/lop"') };
  const { message } = await assertRejects(() => runWithFiles("inline", files, { providers, tools }));
  assertMatch(message, /"preamp\/lop": it is a bare specifier.*did you mean "preamp\/loop"\?/);
});
