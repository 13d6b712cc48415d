/** Tests that all modules of a plan are fetched before any of them runs. */
import { LazyLoader, LazySandbox } from "../../src/app/lazy_loader_and_sandbox.ts";
import { UrlModules } from "../../src/app/remote_modules.ts";
import type { Loader } from "../../src/loader/loader.ts";
import type { LoadContext, ModuleBundle } from "../../src/loader/types.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import type { ModuleSpec } from "../../src/sdk/plan.ts";
import { assertEquals } from "../assert.ts";
import { contextOf } from "../support/loader.ts";
import { refusal } from "../support/plans.ts";

function specOf(name: string): ModuleSpec {
  const url = `https://m.example/${name}.ts`;
  return { module: name, type: "tool", source: { kind: "url", url, original: url }, config: {}, path: name };
}

const BUILT_IN: ModuleSpec = { ...specOf("built-in"), source: { kind: "builtin" } };

/** A loader that records its calls; `prepare` of a name waits until the test continues it. */
function scripted(): {
  loading: LazyLoader;
  steps: string[];
  held: Map<string, PromiseWithResolvers<void>>;
  signals: AbortSignal[];
} {
  const steps: string[] = [];
  const signals: AbortSignal[] = [];
  const held = new Map<string, PromiseWithResolvers<void>>();
  const loader = {
    async prepare({ module }: ModuleSpec, { signal }: LoadContext) {
      steps.push(`prepare ${module}`);
      if (signal) signals.push(signal);
      await held.get(module!)?.promise;
      return { requested: module } as Partial<ModuleBundle> as ModuleBundle; // the test only passes it on
    },
    link({ requested }: ModuleBundle) {
      steps.push(`link ${requested}`);
      return Promise.resolve({
        module: { requested },
        isolation: "inline",
        integrity: "sha256-x",
        placeOf: () => undefined,
      });
    },
  } as unknown as Loader; // the methods that are used
  return {
    loading: new LazyLoader({ cache_dir: null, load: () => Promise.resolve({ createLoader: () => loader }) }),
    steps,
    held,
    signals,
  };
}

function modulesOf(specs: readonly ModuleSpec[], loading: LazyLoader): UrlModules {
  const policy = defaultPolicy();
  return new UrlModules({
    specs,
    context: contextOf(),
    policy,
    loading,
    sandboxing: new LazySandbox({ policy, log() {} }),
    tierOf: () => "inline",
    grantOf: () => ({ grant: {} }),
  });
}

Deno.test("UrlModules prepares all modules in parallel, once, and links those that are opened", async () => {
  const { loading, steps, held } = scripted();
  const gate = Promise.withResolvers<void>();
  held.set("a", gate);
  const modules = modulesOf([specOf("a"), BUILT_IN, specOf("b")], loading);
  const loaded = modules.load();
  await loading.loader();
  await Promise.resolve();
  assertEquals(steps, ["prepare a", "prepare b"]);
  gate.resolve();
  await loaded;
  await modules.load();
  const opened = await modules.open(specOf("b"), { warn() {}, console() {} });
  assertEquals(steps, ["prepare a", "prepare b", "link b"]);
  assertEquals([opened.isolation, opened.integrity, (opened.module as { requested?: string }).requested], [
    "inline",
    "sha256-x",
    "b",
  ]);
});

Deno.test("UrlModules rejects with the first failure, does not wait for the others, and links none", async () => {
  const { loading, steps, held, signals } = scripted();
  held.set("slow", Promise.withResolvers());
  const failing = Promise.withResolvers<void>();
  held.set("wrong", failing);
  const modules = modulesOf([specOf("slow"), specOf("wrong")], loading);
  const refused = refusal(() => modules.load());
  failing.reject(new PreampError("module_fetch_failed", "gone"));
  assertEquals((await refused).code, "module_fetch_failed");
  assertEquals(signals.map(({ aborted }) => aborted), [true, true]);
  assertEquals(
    (await refusal(() => modules.open(specOf("slow"), { warn() {}, console() {} }))).code,
    "module_fetch_failed",
  );
  assertEquals(steps, ["prepare slow", "prepare wrong"]);
});
