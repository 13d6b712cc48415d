/**
 * The wire formats of the built-in providers, with the variables that lead the program to a server on
 * loopback.
 */
import { ANTHROPIC } from "../modules/providers/anthropic_wire.ts";
import type { Vendor } from "../modules/providers/faults.ts";
import { GEMINI } from "../modules/providers/gemini_wire.ts";
import { OLLAMA } from "../modules/providers/ollama_wire.ts";
import { CHAT, RESPONSES } from "../modules/provider_openai/vendors.ts";

/** One wire format. */
export interface Wire {
  readonly vendor: Vendor;
  /** The provider's name in `PROVIDER/MODEL`. */
  readonly provider: string;
  /** `PROVIDER/MODEL`. */
  readonly model: string;
  /** The plan's entry of the provider; absent when its defaults are enough. */
  readonly entry?: { readonly module: string; readonly config: Record<string, unknown> };
  /** Returns the variables for a server at this address. */
  env(url: string): Record<string, string>;
}

/** Key that no output may contain. */
export const KEY = "sk-canary-0123456789abcdef";

/** Every wire format, by the name of its API. */
export const WIRES: Readonly<Record<string, Wire>> = {
  "Anthropic": {
    vendor: ANTHROPIC,
    provider: "anthropic",
    model: "anthropic/claude-sonnet-5-5",
    env: (url) => ({ ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: url }),
  },
  "Chat Completions": {
    vendor: CHAT,
    provider: "openai",
    model: "openai/vendor/model:free",
    env: (url) => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1` }),
  },
  "Responses": {
    vendor: RESPONSES,
    provider: "openai",
    model: "openai/gpt-6.1-terra",
    entry: { module: "provider-openai", config: { api: "responses" } },
    env: (url) => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1` }),
  },
  "Gemini": {
    vendor: GEMINI,
    provider: "gemini",
    model: "gemini/gemini-3.8-flash",
    env: (url) => ({ GEMINI_API_KEY: KEY, GOOGLE_GEMINI_BASE_URL: url }),
  },
  "Ollama": {
    vendor: OLLAMA,
    provider: "ollama",
    model: "ollama/qwen3:8b",
    env: (url) => ({ OLLAMA_HOST: url }),
  },
};
