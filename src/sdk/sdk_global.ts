/**
 * The SDK where a bundle looks for it: `globalThis[Symbol.for("preamp.sdk")]`, by specifier. No bundle carries a copy of it;
 * what nobody asks for is not loaded.
 */

const PARTS: Readonly<Record<string, () => Promise<object>>> = {
  "preamp": () => import("./mod.ts"),
  "preamp/loop": () => import("./loop.ts"),
  "preamp/context": () => import("./context.ts"),
  "preamp/testing": () => import("./testing.ts"),
  "zod": () => import("zod"),
};

const KEY = Symbol.for("preamp.sdk");

/** Puts parts of the SDK where bundles find them. Called by whoever runs a bundle, before it is linked. */
export async function installSdk(uses: readonly string[]): Promise<void> {
  const holder = globalThis as { [KEY]?: Record<string, object> };
  const sdk = holder[KEY] ??= Object.create(null) as Record<string, object>;
  for (const name of uses) {
    if (!Object.hasOwn(PARTS, name)) {
      throw new TypeError(`Cannot install the SDK: it has no part ${JSON.stringify(name)}`);
    }
    sdk[name] ??= await PARTS[name]!();
  }
}
