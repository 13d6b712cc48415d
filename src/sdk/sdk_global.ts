/**
 * Installs the SDK at `globalThis[Symbol.for("preamp.sdk")]`, where bundles find its parts by specifier. No
 * bundle contains a copy of the SDK; unused parts are not loaded.
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
  return Object.create(others, Object.getOwnPropertyDescriptors(exports));
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
