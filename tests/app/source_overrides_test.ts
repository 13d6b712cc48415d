import { withOverrides } from "../../src/app/source_overrides.ts";
import { BUILTIN_IDS } from "../../src/app/module_table.ts";
import { compilePlan } from "../../src/plan/compile.ts";
import { askedOf } from "../../src/plan/permissions/permission_block.ts";
import { specsOf } from "../../src/policy/authorise.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";

Deno.test("withOverrides() gives the override of a built-in module no permission, and never runs it inline", async () => {
  const compiled = await compilePlan({
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: ["provider-mock"],
    permissions: { net: true },
    tools: [
      { module: "tool-bash", permissions: { run: ["bash"] }, isolation: "inline" },
      "tool-search",
      { module: "tool-mine", permissions: { read: ["/srv"] } },
      { module: "tool-web", source: "https://a.example/web.ts", permissions: { read: ["/srv"] } },
    ],
  }, { origin: "operator", builtins: BUILTIN_IDS });
  const url = "https://b.example/mod.ts";
  const override = { text: url, source: { kind: "url" as const, original: url, url } };
  const ids = ["tool-bash", "tool-search", "tool-mine", "tool-web", "loop-basic"];
  const { plan, warnings } = withOverrides(compiled, new Map(ids.map((id) => [id, override])), BUILTIN_IDS);
  const changed = specsOf(plan).filter(({ source }) => source === override.source);
  assertEquals(
    changed.map((spec) => [spec.module, askedOf(spec, plan), spec.isolation]),
    [
      ["loop-basic", {}, "process"],
      ["tool-bash", {}, "process"],
      ["tool-search", {}, "process"],
      ["tool-mine", { read: ["/srv"] }, undefined],
      ["tool-web", { read: ["/srv"] }, undefined],
    ],
  );
  const said = warnings.filter(({ code }) => code === "source_overridden").map(({ message }) => message);
  assertEquals(said.map((message) => message.includes("none of the permissions")), [
    true,
    true,
    true,
    false,
    false,
  ]);
  assertStringIncludes(said[0]!, 'Module "loop-basic" comes from');
});
