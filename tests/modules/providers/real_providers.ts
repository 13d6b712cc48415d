/** Built-in providers of real models: they need a key, a network, and the client of their vendor. */
export const REAL_PROVIDERS: ReadonlySet<string> = new Set([
  "provider-anthropic",
  "provider-gemini",
  "provider-ollama",
  "provider-openai",
]);
