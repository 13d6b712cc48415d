/** Keys of vendors in the variables of this process: they are secrets from the start, used or not. */

/** The variables from which built-in modules take keys; a test compares them with the modules. */
export const VENDOR_KEYS: readonly string[] = [
  "ANTHROPIC_API_KEY",
  "AZURE_API_KEY",
  "AZURE_OPENAI_API_KEY",
  "BRAVE_API_KEY",
  "DEEPSEEK_API_KEY",
  "GEMINI_API_KEY",
  "GOOGLE_API_KEY",
  "GROQ_API_KEY",
  "MISTRAL_API_KEY",
  "OLLAMA_API_KEY",
  "OPENAI_API_KEY",
  "OPENROUTER_API_KEY",
  "TAVILY_API_KEY",
  "XAI_API_KEY",
];

/** Least characters of a key: what people set where a server wants none, such as `ollama`, is a word. */
const MIN_KEY_CHARS = 8;

/** Returns the keys of vendors that are set. @param env Returns a variable. */
export function vendorKeys(env: (name: string) => string | undefined): string[] {
  return VENDOR_KEYS.map((name) => env(name)?.trim() ?? "").filter(({ length }) => length >= MIN_KEY_CHARS);
}
