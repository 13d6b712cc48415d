import fc from "fast-check";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { childPlan } from "../../src/plan/child_plan.ts";
import type { FilePath } from "../../src/plan/permissions/permission_entry.ts";
import { PERMISSION_KINDS } from "../../src/sdk/plan.ts";
import { compilePlan } from "../../src/plan/compile.ts";
import { authorise, authoriseWithin } from "../../src/policy/authorise.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { excessPermissions, grantedAnywhere } from "../../src/policy/refused_permissions.ts";
import { errorCode } from "../../src/sdk/errors.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { BUILTINS } from "../support/policies.ts";
import { refusal } from "../support/plans.ts";

const HOSTS = ["a.example", "b.example", "*.example", "a.example:443"];
const PATHS = ["/data", "/tmp", "/data/in"];
const ENTRIES = {
  net: HOSTS,
  import: HOSTS,
  read: PATHS,
  write: PATHS,
  ffi: PATHS,
  env: ["A_B", "A_*", "C"],
  run: ["git", "sh"],
  sys: ["hostname", "uid"],
};
/** At most three permissions: with all eight nearly every plan is refused. */
const permissions = fc.uniqueArray(fc.constantFrom(...PERMISSION_KINDS), { maxLength: 3 }).chain((names) =>
  fc.record(
    Object.fromEntries(
      names.map((name) => [
        name,
        fc.oneof(fc.boolean(), fc.array(fc.constantFrom(...ENTRIES[name]), { maxLength: 2 })),
      ]),
    ),
  )
);
const tool = fc.record({
  module: fc.constantFrom("tool-calculator", "tool-filesystem"),
  instance_id: fc.constantFrom("i1", "i2", "i3"),
  permissions: fc.option(permissions, { nil: undefined }),
}, { requiredKeys: ["module", "instance_id"] });
const section = fc.record({
  tools: fc.uniqueArray(tool, { maxLength: 3, selector: ({ instance_id }) => instance_id }),
  permissions: fc.option(permissions, { nil: undefined }),
}, { requiredKeys: ["tools"] });

Deno.test("authoriseWithin() never gives a child a grant that its parent does not have, for any plan and overlay", async () => {
  let given = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(
      section,
      section,
      async (parent, overlay) => {
        const origin = "operator";
        const written = JSON.parse(JSON.stringify({
          session: { orchestrator: "loop-streaming", context: "context-simple" },
          providers: ["provider-mock"],
          ...parent,
          agents: { child: overlay },
        })) as JsonObject;
        const options = { origin, policy: defaultPolicy(), builtins: BUILTINS } as const;
        const grants = authorise(await compilePlan(written, { origin }), options);
        const child = await compilePlan(childPlan(written, "child").written, { origin });
        const most = grantedAnywhere(grants);
        const alone = authorise(child, options);
        const wider = Object.values(alone.permissions).some((one) => excessPermissions(one, most).length > 0);
        try {
          const within = authoriseWithin(child, options, grants);
          assert(!wider);
          for (const one of Object.values(within.permissions)) assertEquals(excessPermissions(one, most), []);
          given++;
        } catch (error) {
          assertEquals(errorCode(error), "policy_refused");
          assert(wider); // the parent's grants are never refused
          refused++;
        }
      },
    ),
    { numRuns: 300 },
  );
  assert(given > 20 && refused > 20, `${given} given, ${refused} refused`);
});

Deno.test("authoriseWithin() authorises a child like any plan of its origin, and reports every reason", async () => {
  const session = { orchestrator: "loop-streaming", context: "context-simple" };
  const parent = await compilePlan({ session, providers: ["provider-mock"] }, { origin: "operator" });
  const options = { origin: "operator", policy: defaultPolicy(), builtins: BUILTINS } as const;
  const grants = authorise(parent, options);
  const child = (tools: unknown[]) =>
    compilePlan({ session, providers: ["provider-mock"], tools } as JsonObject, { origin: "operator" });
  const wide = await child([{ module: "tool-filesystem", permissions: { read: ["/etc"], run: true } }]);
  const error = await refusal(() => authoriseWithin(wide, options, grants));
  assertEquals(error.details.map(({ path }) => path), [
    "tools[0].permissions.read",
    "tools[0].permissions.run",
  ]);
  assertStringIncludes(error.details[0]?.message ?? "", 'Cannot grant read "/etc" to a sub-agent');
  const unknown = await child(["tool-unheard-of"]);
  assertEquals((await refusal(() => authoriseWithin(unknown, options, grants))).code, "plan_invalid");
});

Deno.test("authoriseWithin() resolves the paths of a default grant once, not for each of its tools", async () => {
  const written = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
    permissions: { read: PATHS },
    tools: Array.from({ length: 50 }, (_, at) => ({ module: "tool-calculator", instance_id: `i${at}` })),
  };
  let resolved = 0;
  const asked = (path: FilePath) => {
    resolved++;
    return path;
  };
  const policy = defaultPolicy();
  policy.permissions.max.read = ["/"];
  const options = { origin: "caller" as const, policy, builtins: BUILTINS, paths: { asked } };
  const compiled = await compilePlan(written, { origin: "caller" });
  authoriseWithin(compiled, options, authorise(compiled, options));
  assertEquals(resolved, 2 * PATHS.length);
});
