/**
 * Installs what the host provides at `globalThis[Symbol.for("preamp.sdk")]`, where bundles find it by
 * specifier: parts of the SDK, and packages of built-in modules. No bundle contains a copy of them; what is
 * unused is not loaded.
 */
import { didYouMean } from "./findings.ts";
import { isObject } from "./json.ts";

const PARTS: Readonly<Record<string, () => Promise<object>>> = {
  "preamp": () => import("./mod.ts"),
  "preamp/base": () => import("./base.ts"),
  "preamp/loop": () => import("./loop.ts"),
  "preamp/context": () => import("./context.ts"),
  "preamp/provider": () => import("./provider.ts"),
  "preamp/web": () => import("./web.ts"),
  "preamp/testing": () => import("./testing.ts"),
  "zod": () => import("zod"),
  "@ai-sdk/anthropic/internal": () => import("@ai-sdk/anthropic/internal"),
  "@ai-sdk/deepseek": () => import("@ai-sdk/deepseek"),
  "@ai-sdk/google": () => import("@ai-sdk/google"),
  "@ai-sdk/groq": () => import("@ai-sdk/groq"),
  "@ai-sdk/mistral": () => import("@ai-sdk/mistral"),
  "@ai-sdk/openai-compatible": () => import("@ai-sdk/openai-compatible"),
  "@ai-sdk/openai/internal": () => import("@ai-sdk/openai/internal"),
  "@ai-sdk/xai": () => import("@ai-sdk/xai"),
  "@mdream/js": () => import("@mdream/js"),
  "@modelcontextprotocol/client": () => import("@modelcontextprotocol/client"),
  "diff": () => import("diff"),
  "ignore": () => import("ignore"),
  "js-yaml": () => import("js-yaml"),
  "jschardet": () => import("jschardet"),
  "re2js": () => import("re2js"),
  "unbash": () => import("unbash"),
};

const KEY = Symbol.for("preamp.sdk");

/**
 * Installs parts of the SDK for bundles. Called before a bundle is linked.
 *
 * @throws {TypeError} when a name is not a part of the SDK.
 */
export async function installSdk(uses: readonly string[]): Promise<void> {
  const holder = globalThis as { [KEY]?: Record<string, object> };
  const sdk = holder[KEY] ??= Object.create(null) as Record<string, object>;
  for (const name of uses) {
    if (!Object.hasOwn(PARTS, name)) {
      throw new TypeError(`Cannot install the SDK: it has no part ${JSON.stringify(name)}`);
    }
    sdk[name] ??= withoutOthers(name, await PARTS[name]!());
  }
}

/** Names that the language, bundlers and `console` read of any object. */
const READ_OF_ANY_OBJECT = [...Object.getOwnPropertyNames(Object.prototype), "__esModule", "then", "toJSON"];

/**
 * Returns an object with the exports of a part. Another name is an error where a bundle reads it, since the
 * bundler does not know the exports. A bundle copies them to an object with the same prototype.
 */
function withoutOthers(part: string, exports: object): object {
  const others = new Proxy(Object.create(null), {
    get(_, name) {
      if (typeof name === "symbol" || READ_OF_ANY_OBJECT.includes(name)) return undefined;
      const meant = didYouMean(name, Object.keys(exports));
      const advice = meant === undefined ? "" : `; did you mean ${meant}?`;
      throw new SyntaxError(`"${part}" has no export ${name}${advice}`);
    },
  });
  const own = Object.getOwnPropertyDescriptors(exports);
  // without it a bundle takes the whole object for the default export
  return Object.create(others, Object.hasOwn(own, "default") ? { ...own, __esModule: { value: true } } : own);
}

/**
 * Returns the exports of a module's file as a module. Without a `mount`, mounting it mounts the default
 * export, such as `defineTool(…)`.
 */
export function moduleOf(exports: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { default: part, ...rest } = exports;
  return exports.mount !== undefined || !isObject(part)
    ? exports
    : { ...rest, mount: () => Promise.resolve(part) };
}
