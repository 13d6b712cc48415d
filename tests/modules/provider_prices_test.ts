/** The price tables of the providers against those of genai-prices, which others keep. */
import { calcPrice, findProvider, type ModelPrice } from "@pydantic/genai-prices";
import type { ModelInfo, Module, Prices } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { assert, assertEquals } from "../assert.ts";
import * as anthropic from "../../modules/provider-anthropic/mod.ts";
import * as deepseek from "../../modules/provider-deepseek/mod.ts";
import * as gemini from "../../modules/provider-gemini/mod.ts";
import * as groq from "../../modules/provider-groq/mod.ts";
import * as mistral from "../../modules/provider-mistral/mod.ts";
import * as openai from "../../modules/provider-openai/mod.ts";
import * as xai from "../../modules/provider-xai/mod.ts";

/** Day of both tables. */
const DAY = new Date("2026-11-22T12:00:00Z");

const ROWS: readonly [name: string, module: Module, provider_id: string, least: number][] = [
  ["anthropic", anthropic, "anthropic", 10],
  ["gemini", gemini, "google", 3],
  ["openai", openai, "openai", 10],
  ["deepseek", deepseek, "deepseek", 2],
  ["groq", groq, "groq", 5],
  ["mistral", mistral, "mistral", 4],
  ["xai", xai, "x-ai", 4],
];

/** Returns the price of requests that are not long, as a number. */
function baseOf(price: ModelPrice[string]): number | undefined {
  return typeof price === "object" ? price.base : price;
}

async function pricesOf(module: Module, name: string, model: string): Promise<Prices | undefined> {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, { api_key: "k", model });
  const { getModelInfo } = coordinator.providers[name] as unknown as { getModelInfo(): ModelInfo };
  return getModelInfo.call(coordinator.providers[name]).prices as Prices | undefined;
}

for (const [name, module, providerId, least] of ROWS) {
  Deno.test(`prices of ${name} are those of genai-prices`, async () => {
    let compared = 0;
    const wrong: string[] = [];
    for (const { id } of findProvider({ providerId })?.models ?? []) {
      const ours = await pricesOf(module, name, id);
      const theirs = calcPrice({ input_tokens: 1, output_tokens: 1 }, id, { providerId, timestamp: DAY })
        ?.model_price;
      if (!ours || !theirs) continue;
      compared++;
      for (const key of ["input", "output", "cache_read", "cache_write"] as const) {
        const their = baseOf(theirs[`${key}_mtok`]);
        const our = ours[key];
        if (our === undefined || their === undefined || Number(our) === their) continue;
        wrong.push(`${id} ${key}: ${our} instead of ${their}`);
      }
    }
    assertEquals(wrong, []);
    assert(compared >= least, `only ${compared} models are in both tables`);
  });
}
