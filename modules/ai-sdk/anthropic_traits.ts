/** What Anthropic's models accept. */

/** What a model accepts. */
interface ModelTraits {
  /** Thinking: a token budget, the model's own decision, or both. */
  readonly thinking: "none" | "budget" | "both" | "adaptive";
  /** Whether it thinks unless a request switches thinking off. */
  readonly thinks_by_default: boolean;
  /** What switches thinking off; undefined: nothing. Only models with `disabled` can be forced to a call. */
  readonly thinking_off: "disabled" | "between_tools" | undefined;
  /** Whether it accepts `temperature` and `top_p`. */
  readonly sampling: boolean;
  /** Whether it accepts `output_config.effort`. */
  readonly effort: boolean;
  /** Whether it accepts `output_config.format`. */
  readonly structured_outputs: boolean;
}

/**
 * Returns what a model accepts, by the version in its id. Ids without a version are those of newer models.
 */
export function traitsOf(id: string): ModelTraits {
  const version = versionOf(id);
  const adaptive_only = version >= 4.7 || id.includes("mythos");
  return {
    thinking: adaptive_only ? "adaptive" : version >= 4.6 ? "both" : version >= 3.7 ? "budget" : "none",
    thinks_by_default: id.includes("claude") && version >= 5 && version < Infinity, // not those of other vendors
    thinking_off: /sonnet-5[-.]5/.test(id)
      ? "between_tools"
      : /fable|mythos|opus-5[-.]5/.test(id)
      ? undefined
      : "disabled",
    sampling: !adaptive_only,
    effort: version >= 4.6 || /opus-4-5/.test(id),
    structured_outputs: version >= 4.5 || /opus-4-1/.test(id),
  };
}

/**
 * Returns `4.5` for `claude-sonnet-4-5-20250929`, `3.7` for `claude-3-7-sonnet-latest`; infinity without a
 * version.
 */
function versionOf(id: string): number {
  const [, major, minor = "0"] = /-(\d{1,2})(?:[-.](\d{1,2}))?(?=$|[-@.:])/.exec(id) ?? [];
  return major === undefined ? Infinity : Number(`${major}.${minor}`);
}
