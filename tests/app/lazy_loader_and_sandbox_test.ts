/** The loader is not imported until a plan names a URL. */
import { LazyLoader, LazySandbox } from "../../src/app/lazy_loader_and_sandbox.ts";
import { createModuleTable } from "../../src/app/module_table.ts";
import { NamedPlans } from "../../src/app/named_plans.ts";
import { Plans } from "../../src/app/plan_service.ts";
import type { Loader } from "../../src/loader/loader.ts";
import { SourceOverrides } from "../../src/app/source_overrides.ts";
import { specsOf } from "../../src/policy/authorise.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { Redactor } from "../../src/policy/redact.ts";
import type { Caller } from "../../src/runs/types.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { staticImports } from "../static_imports.ts";

const OPERATOR: Caller = { name: "terminal", namespace: "test", origin: "operator" };

function countedLoading(): { loading: LazyLoader; made: () => number; closed: () => number } {
  let made = 0;
  let closed = 0;
  const loader = { close: () => Promise.resolve(void closed++) } as Partial<Loader> as Loader; // only closed here
  const loading = new LazyLoader({
    cache_dir: null,
    load: () => Promise.resolve({ createLoader: () => (made++, loader) }),
  });
  return { loading, made: () => made, closed: () => closed };
}

Deno.test("LazyLoader creates one loader at the first call, and close() ends it", async () => {
  const { loading, made, closed } = countedLoading();
  assertEquals(made(), 0);
  const [first, second] = await Promise.all([loading.loader(), loading.loader()]);
  assert(first === second);
  await loading.close();
  assertEquals([made(), closed()], [1, 1]);
});

Deno.test("LazyLoader without a call has nothing to close", async () => {
  const { loading, made, closed } = countedLoading();
  await loading.close();
  assertEquals([made(), closed()], [0, 0]);
});

Deno.test("LazyLoader and LazySandbox try again after a failure, and have nothing to close until then", async () => {
  let failures = 0;
  const load = () => Promise.reject(new Error(`failure ${++failures}`));
  const loading = new LazyLoader({ cache_dir: null, load });
  const sandboxing = new LazySandbox({ policy: defaultPolicy(), log() {}, load });
  await assertRejects(() => loading.loader(), Error, "failure 1");
  await assertRejects(() => sandboxing.sandbox(), Error, "failure 2");
  await assertRejects(() => loading.loader(), Error, "failure 3");
  await assertRejects(() => sandboxing.sandbox(), Error, "failure 4");
  await loading.close();
  await sandboxing.close();
});

Deno.test("a run of built-in modules imports no file of the loader", async () => {
  for (
    const path of [
      "main.ts",
      "src/server/mod.ts",
      "src/app/create_services.ts",
      "src/cli/commands/run.ts",
      "src/cli/commands/serve.ts",
    ]
  ) {
    const imports = await staticImports(path);
    assertEquals(
      imports.filter((specifier) => /src\/loader\/|esbuild|es-module-lexer/.test(specifier)),
      [],
      path,
    );
  }
});

Deno.test("a plan of built-in modules runs without a loader", async () => {
  const { loading, made } = countedLoading();
  const plans = new Plans({
    policy: defaultPolicy(),
    named: new NamedPlans([]),
    modules: createModuleTable(),
    env: () => undefined,
    loading,
    sandboxing: new LazySandbox({ policy: defaultPolicy(), log() {} }),
    sources: new SourceOverrides([], "none"),
  });
  const ready = await plans.ready({ prompt: "hello" }, OPERATOR);
  await ready.load?.();
  for (const spec of specsOf(ready.compiled.plan)) {
    const { integrity } = await ready.open(spec, new Redactor(), { warn() {}, console() {} });
    assertEquals(integrity, null);
  }
  assertEquals(made(), 0);
});
