/** What a guest receives of its session, and of its process. */
import { FakeClock } from "../../../src/testing/clocks.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import { assert, assertEquals } from "../../assert.ts";
import { Lab, mounted, toolOf } from "../../support/sandbox.ts";

Deno.test("a guest receives its session, its own config and grant, and of the plan only the names of modules", async () => {
  await using lab = new Lab();
  const code = toolOf(`const { session_id, parent_id, limits } = coordinator;
    return { session_id, parent_id, limits, config: coordinator.config, own: config, dict: coordinator.toDict(),
      state: { ...coordinator.session_state }, now: Math.round(coordinator.clock.now() / 3.6e6), ids: [coordinator.newId("x"), coordinator.newId("x")] }`);
  const clock = new FakeClock();
  const { call } = await mounted(lab, code, {
    config: { mine: 1 },
    coordinator: {
      ...{ clock, session_id: "ses_7", parent_id: "ses_1", limits: { max_tool_calls: 7 } },
      session_state: { kept: [1] },
      config: {
        session: {
          orchestrator: { module: "loop", source: "https://x/y?token=s3cret", config: { key: "s3cret" } },
          context: "context-simple",
          debug: true,
          injection_size_limit: 5,
          metadata: { owner: "s3cret" },
        },
        system: "s3cret",
        providers: [{
          module: "p",
          instance_id: "p2",
          source: "git+https://s3cret",
          config: { api_key: "s3cret" },
        }],
        tools: [
          "t",
          { module: "u", config: { k: "s3cret" }, permissions: { read: ["/s3cret"] } },
          { module: "guest", config: { mine: "s3cret" }, permissions: { net: ["a.example"] } },
        ],
        agents: { a: { system: "s3cret", description: "Helps" }, b: {} },
        limits: { max_tool_calls: 7 },
      },
    },
  });
  const output = await call("t") as JsonObject;
  const { ids, dict, limits, ...rest } = output;
  assertEquals((limits as JsonObject).max_tool_calls, 7);
  assertEquals(new Set(ids as string[]).size, 2);
  assertEquals((dict as JsonObject).tools, ["t"]);
  assertEquals(rest, {
    ...{ session_id: "ses_7", parent_id: "ses_1", own: { mine: 1 }, state: { kept: [1] } },
    now: Math.round(clock.now() / 3.6e6),
    config: {
      session: {
        ...{ debug: true, injection_size_limit: 5 },
        orchestrator: { module: "loop" },
        context: { module: "context-simple" },
      },
      providers: [{ module: "p", instance_id: "p2" }],
      tools: [
        { module: "t" },
        { module: "u" },
        { module: "guest", config: { mine: 1 }, permissions: { net: ["a.example"] } },
      ],
      agents: { a: { description: "Helps" }, b: {} },
      limits: { max_tool_calls: 7 },
    },
  });
  assert(!JSON.stringify(output).includes("s3cret"));
});

Deno.test("a guest reads the variables it was granted, and nothing else of its process", async () => {
  await using lab = new Lab();
  const names = ["PREAMP_TEST_ONE", "PREAMP_TEST_TWO", "PREAMP_OTHER", "HOME", "PATH", "DENO_DIR"];
  for (const name of names.slice(0, 3)) Deno.env.set(name, `value of ${name}`);
  const code = toolOf(
    `const read = (name) => { try { return Deno.env.get(name) ?? null } catch (error) { return error.name } };
    const found = Object.fromEntries(input.names.map((name) => [name, read(name)]));
    try { found["*"] = Deno.env.toObject() } catch (error) { found["*"] = error.name }
    return found`,
  );
  const refused = { HOME: "NotCapable", PATH: "NotCapable", DENO_DIR: "NotCapable", "*": "NotCapable" };
  const nothing = Object.fromEntries(names.map((name) => [name, "NotCapable"]));
  const none = await mounted(lab, code);
  assertEquals(await none.call("t", { names }), { ...nothing, "*": "NotCapable" });
  const some = await mounted(lab, code, { grant: { env: ["PREAMP_TEST_ONE", "PREAMP_TEST_TWO"] } });
  assertEquals(await some.call("t", { names }), {
    ...refused,
    PREAMP_TEST_ONE: "value of PREAMP_TEST_ONE",
    PREAMP_TEST_TWO: "value of PREAMP_TEST_TWO",
    PREAMP_OTHER: "NotCapable",
  });
  for (const name of names.slice(0, 3)) Deno.env.delete(name);
});
