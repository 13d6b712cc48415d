import { readModelChoice, withModel } from "../../src/plan/model_choice.ts";
import { readModelName } from "../../src/plan/check/field_checks.ts";
import { assertEquals } from "../assert.ts";
import { refusal } from "../support/plans.ts";

const MODULES = new Set(["provider-anthropic", "provider-mock", "provider-ollama", "tool-todo"]);
const SESSION = { orchestrator: "loop-streaming", context: "context-simple" };

Deno.test("readModelName() accepts ids with slashes, colons and most signs, and a provider alone", () => {
  for (
    const [text, name] of [
      ["anthropic/claude-sonnet-5-5", { provider: "anthropic", model: "claude-sonnet-5-5" }],
      ["openai/meta-llama/llama-3.1-70b:free", {
        provider: "openai",
        model: "meta-llama/llama-3.1-70b:free",
      }],
      ["ollama/hf.co/x/Y-GGUF:Q4_K_M", { provider: "ollama", model: "hf.co/x/Y-GGUF:Q4_K_M" }],
      ["openai/ft:gpt-4o:acme::a1", { provider: "openai", model: "ft:gpt-4o:acme::a1" }],
      ["anthropic", { provider: "anthropic" }],
      ["", null],
      ["anthropic/", null],
      ["/claude", null],
      ["Anthropic/claude", null],
      ["anthropic/two words", null],
      ["anthropic/${HOME}", null],
      ["anthropic/a\nb", null],
      [`anthropic/${"x".repeat(201)}`, null],
    ] as const
  ) assertEquals([text, readModelName(text)], [text, name]);
});

Deno.test("readModelChoice() suggests a provider for an unknown one", async () => {
  assertEquals(readModelChoice("ollama/qwen3:8b", MODULES), {
    provider: "ollama",
    module: "provider-ollama",
    model: "qwen3:8b",
  });
  const { code, details } = await refusal(() => readModelChoice("olama/qwen3", MODULES));
  assertEquals([code, details], ["request_invalid", [{
    path: "model",
    message: 'Cannot use model "olama/qwen3": there is no provider "olama"',
    hint:
      "did you mean ollama? the providers are anthropic, mock, ollama; write PROVIDER or PROVIDER/MODEL, such as anthropic/claude-sonnet-5-5",
  }]]);
});

Deno.test("withModel() replaces the first provider of a plan that does not have the chosen one", () => {
  const plan = { session: SESSION, providers: ["provider-mock"], tools: ["tool-todo"] };
  assertEquals(withModel(plan, { provider: "anthropic", module: "provider-anthropic", model: "m" }), {
    session: SESSION,
    providers: [{ module: "provider-anthropic", config: { model: "m", priority: -1 }, required: true }],
    tools: ["tool-todo"],
  });
});

Deno.test("withModel() keeps the settings of a provider that the plan has, without those of its old model", () => {
  const own = {
    module: "provider-anthropic",
    config: {
      model: "old",
      api_key: "${KEY}",
      prices: { input: "1", output: "2" },
      context_window: 5,
      priority: 7,
    },
  };
  const plan = {
    session: {
      ...SESSION,
      orchestrator: { module: "loop-basic", config: { default_provider: "mock", steering: false } },
    },
    providers: [{ module: "provider-mock", config: { priority: 3 } }, own],
  };
  const choice = { provider: "anthropic", module: "provider-anthropic", model: "new" };
  const changed = withModel(plan, choice);
  assertEquals(changed, {
    session: { ...SESSION, orchestrator: { module: "loop-basic", config: { steering: false } } },
    providers: [
      {
        module: "provider-anthropic",
        config: { model: "new", api_key: "${KEY}", priority: -1 },
        required: true,
      },
      { module: "provider-mock", config: { priority: 3 } },
    ],
  });
  assertEquals(withModel(changed, choice), changed, "the same choice again changes nothing");
  assertEquals(plan.providers[1], own, "the plan itself is not changed");
});

Deno.test("withModel() keeps the model and its settings when only the provider is chosen", () => {
  const config = { model: "m", prices: { input: "1", output: "2" } };
  const plan = { session: SESSION, providers: [{ module: "provider-ollama", config }] };
  assertEquals(withModel(plan, { provider: "ollama", module: "provider-ollama" }), {
    session: SESSION,
    providers: [{ module: "provider-ollama", config: { ...config, priority: -1 }, required: true }],
  });
});
