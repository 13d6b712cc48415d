/** The form in which users name a model: `anthropic/claude-sonnet-5-5`. */

/** The form, for messages. */
export const MODEL_FORM = "PROVIDER or PROVIDER/MODEL, such as anthropic/claude-sonnet-5-5";

/**
 * A provider, and one of its models, whose id may contain slashes and colons. Without `$`, because the text
 * becomes part of a config, where it could begin a variable.
 */
const FORM = /^([a-z0-9][a-z0-9-]{0,63})(?:\/([\x21-\x23\x25-\x7e]{1,200}))?$/;

/** Returns provider and model; null for text of another form. A model that is absent is the provider's default. */
export function readModelName(text: string): { provider: string; model?: string } | null {
  const [, provider, model] = FORM.exec(text) ?? [];
  if (provider === undefined) return null;
  return model === undefined ? { provider } : { provider, model };
}
