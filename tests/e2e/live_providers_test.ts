/**
 * Providers against their vendors. Each test is skipped unless the variable of its key is set; a run costs
 * less than a cent:
 *
 *   ANTHROPIC_API_KEY=… deno test -A tests/e2e/live_providers_test.ts
 */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { runProgram } from "./program.ts";

interface Row {
  readonly provider: string;
  /** Variable with the key, or with the address of a local server. */
  readonly variable: string;
  /** Cheapest model that calls tools. */
  readonly model: string;
  /** Whether the price of the model is known. */
  readonly priced: boolean;
}

const ROWS: readonly Row[] = [
  { provider: "anthropic", variable: "ANTHROPIC_API_KEY", model: "claude-haiku-4-5", priced: true },
  { provider: "openai", variable: "OPENAI_API_KEY", model: "gpt-6-luna", priced: true },
  { provider: "gemini", variable: "GEMINI_API_KEY", model: "gemini-3.5-flash-lite", priced: true },
  { provider: "ollama", variable: "OLLAMA_HOST", model: "qwen3:8b", priced: false },
];

const PROMPT = "What is 61 × 73? Use the calculator, then answer in one short sentence.";

for (const { provider, variable, model, priced } of ROWS) {
  const value = Deno.env.get(variable);
  const env = value === undefined ? {} : { [variable]: value };

  Deno.test({
    name: `live: plans/${provider}.yaml calls a tool and answers`,
    ignore: value === undefined,
    fn: async () => {
      const args = [
        "run",
        "-p",
        `plans/${provider}.yaml`,
        "-m",
        `${provider}/${model}`,
        "--output-format",
        "json",
      ];
      const { code, stdout, stderr } = await runProgram([...args, PROMPT], { env });
      assertEquals(code, 0, stderr);
      const run = JSON.parse(stdout);
      assertEquals(run.status, "completed");
      assertStringIncludes(run.output_text.replace(/[,.\s]/g, ""), "4453");
      assert(run.tool_call_count >= 1, "no tool call");
      assert(run.usage.input_tokens > 0 && run.usage.output_tokens > 0, "no usage");
      if (priced) assert(Number(run.usage.cost_usd) > 0, "no cost");
      assert(!stdout.includes(value!) && !stderr.includes(value!), "the key is in the output");
    },
  });

  Deno.test({
    name: `live: preamp provider models ${provider} lists ${model}`,
    ignore: value === undefined,
    fn: async () => {
      const { code, stdout, stderr } = await runProgram(["provider", "models", provider], { env });
      assertEquals(code, 0, stderr);
      assertStringIncludes(stdout, model);
    },
  });
}
