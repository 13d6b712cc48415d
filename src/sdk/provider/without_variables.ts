/**
 * Calls a function, such as the constructor of a vendor's client, that sees no environment variables.
 * Vendors' clients read variables by themselves: each would need a permission, and could change requests in
 * ways that no plan states, such as a header with a secret for another server.
 *
 * @param make A synchronous function, so that nothing else runs meanwhile.
 */
export function withoutVariables<T>(make: () => T): T {
  const process = Object.getOwnPropertyDescriptor(globalThis, "process");
  Object.defineProperty(globalThis, "process", { value: { env: {} }, configurable: true });
  try {
    return make();
  } finally {
    if (process) Object.defineProperty(globalThis, "process", process);
    else Reflect.deleteProperty(globalThis, "process");
  }
}
