/** Where the lock of a plan file is. Apart from reading it: plans are found without. */

/** Name of the lock beside a plan file (plan.md, Tools on plans). */
export const LOCK_FILE = "plan.lock.json";
