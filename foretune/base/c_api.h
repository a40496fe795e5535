/* Defines FORETUNE_API, which marks the functions that a shared library exports. C and C++. */
#ifndef FORETUNE_BASE_C_API_H_
#define FORETUNE_BASE_C_API_H_

#if defined(__GNUC__)
#define FORETUNE_API __attribute__((visibility("default")))
#else
#define FORETUNE_API
#endif

#endif /* FORETUNE_BASE_C_API_H_ */
