/** `hooks-redaction`: replaces secrets in prompts and tool results before the model and the log get them. */
import {
  type Coordinator,
  isObject,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type ModuleInfo,
  type MountReturn,
  PreampError,
  readConfig,
} from "preamp/base";
import type { RE2JS } from "re2js";

const RULES = ["secrets", "pii-basic"] as const;

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    rules: {
      type: "array",
      items: { type: "string", enum: [...RULES] },
      default: ["secrets"],
      description: "secrets: keys, tokens, private keys; pii-basic: e-mail addresses, phone and card numbers",
    },
    patterns: {
      type: "array",
      items: { type: "string", minLength: 1, maxLength: 1_000 },
      maxItems: 50,
      default: [],
      description: "More patterns, in RE2 syntax",
    },
    allowlist: {
      type: "array",
      items: { type: "string" },
      default: [],
      description: "Names of fields of results that stay as they are",
    },
  },
};

export const module: ModuleInfo = {
  id: "hooks-redaction",
  type: "hook",
  version: "1.0.0",
  description: "Replaces secrets in prompts and tool results before the model and the log get them.",
  config_schema: CONFIG_SCHEMA,
};

interface RedactionSettings {
  rules: (typeof RULES)[number][];
  patterns: string[];
  allowlist: string[];
}

/** What a rule finds. Quantifiers have a maximum, so that each search is linear. */
const PATTERNS: Readonly<Record<(typeof RULES)[number], readonly [kind: string, pattern: RegExp][]>> = {
  "secrets": [
    [
      "private key",
      /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[A-Za-z0-9+/=\s:,-]{0,20000}?-----END [A-Z ]{0,40}KEY-----/g,
    ],
    ["token", /\beyJ[\w-]{8,2000}\.eyJ[\w-]{8,8000}\.[\w-]{8,2000}/g], // JSON Web Token, RFC 7519
    ["key", /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g], // Amazon
    ["key", /\bAIza[\w-]{35}\b/g], // Google
    ["key", /\b(?:sk|pk|rk)[-_](?:[a-z]{2,12}[-_]){0,3}[A-Za-z0-9_-]{20,250}/g], // OpenAI, Anthropic, Stripe
    ["token", /\b(?:gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255}|glpat-[\w-]{20,255})/g],
    ["token", /\bxox[abeoprs]-[A-Za-z0-9-]{10,250}/g], // Slack
    ["password", /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/]{1,100}:)[^\s:@/]{1,200}(?=@)/gi], // in a URL
  ],
  "pii-basic": [
    ["e-mail", /[\w.+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,4}/gi],
    ["phone", /(?<![\w.])\+\d[\d ()-]{7,18}\d\b/g],
    ["card", /\b\d(?:[ -]?\d){12,18}\b/g],
  ],
};

/** Emitted after a text was changed: `{where, tool_call_id?, count, kinds}`. */
const REDACTED = "hooks-redaction:redacted";

/**
 * Registers handlers that change the prompt and the results of tools. They run before all others, so that no
 * handler sees a secret.
 *
 * @throws {PreampError} `module_invalid` when a pattern is invalid.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { rules, patterns, allowlist } = readConfig<RedactionSettings>(CONFIG_SCHEMA, config);
  const builtIn = rules.flatMap((rule) => PATTERNS[rule]);
  const own = await Promise.all(patterns.map(compiled));
  coordinator.registerContributor("observability.events", module.id, () => [REDACTED]);

  /** Returns a value with its secrets replaced; adds their kinds to `kinds`. */
  function redacted(value: JsonValue, kinds: string[]): JsonValue {
    if (typeof value === "string") return textOf(value, kinds);
    if (Array.isArray(value)) return value.map((item) => redacted(item, kinds));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        allowlist.includes(name) ? item : redacted(item as JsonValue, kinds),
      ]),
    );
  }

  function textOf(text: string, kinds: string[]): string {
    let result = text;
    for (const [kind, pattern] of builtIn) {
      result = result.replace(pattern, (found) => {
        if (kind === "card" && !isCardNumber(found)) return found;
        kinds.push(kind);
        return `[REDACTED ${kind}]`;
      });
    }
    for (const pattern of own) {
      if (!pattern.matcher(result).find()) continue;
      result = pattern.matcher(result).replaceAll("[REDACTED]");
      kinds.push("pattern");
    }
    return result;
  }

  const on = (event: string, field: string) =>
    coordinator.hooks.register(event, async (_event, data) => {
      const kinds: string[] = [];
      const value = redacted((data[field] ?? null) as JsonValue, kinds);
      if (kinds.length === 0) return null;
      const call = typeof data.tool_call_id === "string" ? { tool_call_id: data.tool_call_id } : {};
      await coordinator.hooks.emit(REDACTED, {
        where: field,
        ...call,
        count: kinds.length,
        kinds: [...new Set(kinds)].sort(),
      });
      return { action: "modify", data: { ...data, [field]: value } };
      // fail_closed: a text that cannot be searched is not passed on
    }, { priority: -1_000, name: `${module.id}:${event}`, fail_closed: true });
  on("prompt:submit", "prompt");
  on("tool:post", "result");
  coordinator.hooks.register("tool:output", (_event, data) => ({
    action: "modify",
    data: { ...data, text: "" }, // a secret may be split over its pieces
  }), { priority: -1_000, name: `${module.id}:tool:output`, fail_closed: true });
}

async function compiled(pattern: string): Promise<RE2JS> {
  const { RE2JS } = await import("re2js");
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new PreampError("module_invalid", `patterns: "${pattern}" is not a valid RE2 pattern: ${message}`, {
      cause: error,
    });
  }
}

/** Returns true if the check digit of a card number fits (Luhn, ISO/IEC 7812-1). */
function isCardNumber(text: string): boolean {
  const digits = [...text.replace(/\D/g, "")].reverse().map(Number);
  const sum = digits.reduce((total, digit, index) => {
    const value = index % 2 === 0 ? digit : digit * 2;
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}
