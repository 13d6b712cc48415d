/** Tests of the permissions that a module reads from its coordinator. */
import type { Coordinator, GrantedPermissions, JsonObject } from "preamp";
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { assert, assertEquals } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

/** Runs a plan whose tools are modules of the application; resolves to what each was granted. */
async function granted(plan: JsonObject, max: Partial<GrantedPermissions> = {}) {
  const seen: Record<string, GrantedPermissions> = {};
  const look = (id: string) => (coordinator: Coordinator) => {
    seen[id] = coordinator.permissions;
    return coordinator.mount("tools", { name: id, description: "Looks.", execute: () => "" });
  };
  const policy = defaultPolicy();
  Object.assign(policy.permissions.max, max);
  const runtime = createRuntime({
    policy,
    modules: { "tool-one": look("tool-one"), "tool-two": look("tool-two") },
  });
  try {
    const handle = await runtime.runs.create(
      {
        prompt: "Hello",
        plan: {
          session: { orchestrator: "loop-basic", context: "context-simple" },
          providers: ["provider-mock"],
          ...plan,
        },
      },
      { namespace: "test", name: "test", origin: "caller" },
      {},
    );
    await handle.settled("end");
    return seen;
  } finally {
    await runtime.close();
  }
}

Deno.test("a module in the program reads its own grant: the plan's, less what the policy withholds", async () => {
  await using folder = await temporaryFolder();
  const { path } = folder;
  await Deno.mkdir(`${path}/data`);
  await Deno.symlink(`${path}/data`, `${path}/link`);
  const seen = await granted({
    tools: [
      { module: "tool-one", permissions: { read: [`${path}/link`], net: ["127.0.0.1:9"] } },
      "tool-two",
    ],
  }, { read: [path], net: true });
  assertEquals([seen["tool-one"]?.read, seen["tool-one"]?.net], [[`${path}/data`], ["127.0.0.1:9"]]);
  for (const value of Object.values(seen["tool-two"] ?? {})) assert(value === false || String(value) === "");
});

Deno.test("a tool without permissions of its own has those of the plan", async () => {
  const seen = await granted({ permissions: { net: ["127.0.0.1:9"] }, tools: ["tool-one"] }, {
    net: true,
  });
  assertEquals(seen["tool-one"]?.net, ["127.0.0.1:9"]);
});
