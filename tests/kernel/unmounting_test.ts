/** What a module mounted is cleaned up at the end, and after a failure. */
import { assertEquals, assertMatch } from "../assert.ts";
import { kit, type TestModule, tool, until } from "../support/sessions.ts";

Deno.test("cleanup() calls the function that mount returned once, and waits for it", async () => {
  const { session, clock, data } = kit({
    tools: [
      async (coordinator) => {
        await coordinator.mount("tools", tool("a"));
        return async () => {
          await clock.after(5);
          ran.push("async");
        };
      },
      async (coordinator) => {
        await coordinator.mount("tools", tool("b"));
        return () => void ran.push("sync");
      },
      async (coordinator) => {
        await coordinator.mount("tools", tool("c"));
        return () => Promise.resolve().then(() => ran.push("promise"));
      },
    ],
  });
  const ran: string[] = [];
  await session.initialize();
  const cleaned = session.cleanup("completed");
  await until(() => clock.pending > 0);
  assertEquals(data("session:cleanup"), []);
  await clock.advance(5);
  await cleaned;
  await session.cleanup("completed");
  assertEquals(ran, ["promise", "sync", "async"]);
  assertEquals(data("session:cleanup"), [{ ran: 3, failed: [] }]);
});

Deno.test("cleanup() runs cleanups in reverse order, also after one that fails or hangs", async () => {
  const ran: string[] = [];
  const at = (name: string, cleanup: () => unknown): TestModule => async (coordinator) => {
    await coordinator.mount("tools", tool(name));
    coordinator.registerCleanup(() => {
      ran.push(name);
      return cleanup();
    });
  };
  const { session, clock, data } = kit({
    tools: [
      at("a", () => {}),
      at("b", () => {
        throw new Error("stuck door");
      }),
      at("c", () => new Promise(() => {})),
    ],
  });
  await session.initialize();
  const cleaned = session.cleanup("completed");
  await until(() => clock.pending > 0);
  await clock.advance(10_000);
  await cleaned;
  assertEquals(ran, ["c", "b", "a"]);
  assertEquals(data("session:cleanup"), [{
    ran: 1,
    failed: [
      { module_id: "tool-2", error: "not finished within 10 s" },
      { module_id: "tool-1", error: "stuck door" },
    ],
  }]);
  assertEquals(clock.pending, 0);
});

Deno.test("a module that mounts nothing and returns a cleanup is skipped as not configured and cleaned up", async () => {
  let cleaned = 0;
  const { session, data } = kit({ tools: [() => () => void cleaned++] });
  await session.initialize();
  const [skipped] = data("module:skipped");
  assertEquals(skipped?.reason, "not_configured");
  assertMatch(String(skipped?.message), /may be conditional/);
  assertEquals(cleaned, 1);
});

Deno.test("everything that a failing module mounted, registered and published is removed", async () => {
  let heard = 0;
  let cleaned = 0;
  const { session, coordinator, run } = kit({
    tools: [async (given) => {
      await given.mount("tools", tool("half"));
      given.hooks.register("prompt:submit", () => void heard++);
      given.registerCapability("half", true);
      given.registerContributor("c", "half", () => 1);
      given.registerCleanup(() => cleaned++);
      assertEquals(Object.keys(given.tools), ["half"]);
      throw new Error("then it broke");
    }],
  });
  await run();
  assertEquals(session.mounts.tools.names, []);
  assertEquals([heard, cleaned, coordinator().getCapability("half")], [0, 1, null]);
  assertEquals(await coordinator().collectContributions("c"), []);
});
