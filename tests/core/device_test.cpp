// tests/core/device_test.cpp: numbers, names and providers of devices; copies between them;
// services beside them.
#include "core/device/device.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/device/registry.hpp"
#include "core/service/services.hpp"
#include "tests/core/fake_device.hpp"

namespace adjoin::test {
namespace {

TEST(Device, NumbersFollowDlpackWhereTheyAreFree) {
  static Fake fake;
  aj_device_vtbl v = accelerator_vtbl(&fake, "numbered");
  v.dlpack_type = 14;  // kDLOneAPI
  ASSERT_EQ(device_kind_add(&v, "a"), nullptr);
  EXPECT_EQ(device_kind_peek("numbered"), 14);
  EXPECT_EQ(device_kind_name(14), "numbered");
  v.name = str("numbered_too");
  ASSERT_EQ(device_kind_add(&v, "a"), nullptr);
  int32_t other = device_kind_peek("numbered_too");
  EXPECT_NE(other, 14);
  EXPECT_TRUE(other >= 1 && other <= kMaxKinds);
  device_kind_remove("numbered_too", "a");
  EXPECT_EQ(device_kind_peek("numbered_too"), 0);
  EXPECT_EQ(device_kind_name(other), "");
  device_kind_remove("numbered", "a");
  EXPECT_EQ(device_kind_peek("numbered"), 0);
}

TEST(Device, BadDefinitionsAreRefused) {
  static Fake fake;
  for (const char* name : {"", "Upper", "9x", "a:b", "a@b", "with space", "meta",
                           "averyveryverylongnamethatnobodywouldtype"}) {
    aj_device_vtbl v = accelerator_vtbl(&fake, name);
    aj_status* s = device_kind_add(&v, "bad");
    ASSERT_NE(s, nullptr) << name;
    free_status(s);
  }
  aj_device_vtbl v = accelerator_vtbl(&fake, "flags");
  v.flags = 1u << 9;
  EXPECT_NE(take_message(device_kind_add(&v, "bad")).find("does not know"), std::string::npos);
  v = accelerator_vtbl(&fake, "cut");
  v.struct_size = 8;
  EXPECT_NE(take_message(device_kind_add(&v, "bad")), "");
  EXPECT_NE(take_message(device_kind_add(nullptr, "bad")), "");
  v = accelerator_vtbl(&fake, "short_table");
  v.struct_size =
      AJ_END_OF(aj_device_vtbl, count);  // the first fields only: what follows is not read
  ASSERT_EQ(device_kind_add(&v, "bad"), nullptr);
  Device* d = nullptr;
  ASSERT_EQ(device_open({DLDeviceType(device_kind_peek("short_table")), 0}, &d), nullptr);
  void* p;
  uint64_t got;
  EXPECT_NE(take_message(device_alloc(d, 8, &p, &got)), "");
}

TEST(Device, TheHighestPriorityIsActiveUntilInUse) {
  static Fake fake[3];
  aj_device_vtbl low = accelerator_vtbl(&fake[0], "shared", 1),
                 high = accelerator_vtbl(&fake[1], "shared", 5),
                 higher = accelerator_vtbl(&fake[2], "shared", 9);
  ASSERT_EQ(device_kind_add(&low, "low"), nullptr);
  EXPECT_NE(take_message(device_kind_add(&low, "low")).find("already"), std::string::npos);
  ASSERT_EQ(device_kind_add(&high, "high"), nullptr);
  int32_t type = device_kind_peek("shared");
  EXPECT_EQ(device_registry().kinds[type].load()->provider->plugin, "high");
  ASSERT_EQ(set_device_provider("shared", "low"), nullptr);
  EXPECT_EQ(device_registry().kinds[type].load()->provider->plugin, "low");
  ASSERT_EQ(set_device_provider("shared", ""), nullptr);
  Device* d = nullptr;
  ASSERT_EQ(device_open({DLDeviceType(type), 0}, &d), nullptr);
  EXPECT_STREQ(d->plugin, "high");
  ASSERT_EQ(device_kind_add(&higher, "higher"), nullptr);
  EXPECT_EQ(device_registry().kinds[type].load()->provider->plugin, "high") << "tensors may exist";
  EXPECT_NE(take_message(set_device_provider("shared", "low")).find("in use"), std::string::npos);
  int32_t other = 0;
  ASSERT_EQ(device_kind_find("shared@low", &other), nullptr);
  EXPECT_NE(other, type);
  EXPECT_EQ(device_kind_name(other), "shared@low");
  int32_t again = 0;
  ASSERT_EQ(device_kind_find("shared@low", &again), nullptr);
  EXPECT_EQ(again, other);
  ASSERT_EQ(device_kind_find("shared@high", &again), nullptr);
  EXPECT_EQ(again, type);
  EXPECT_NE(take_message(device_kind_find("shared@nobody", &again)), "");
}

TEST(Device, OpeningSaysWhatIsMissing) {
  Device* d = nullptr;
  int32_t type = 0;
  EXPECT_NE(take_message(device_kind_find("nosuchdevice", &type)).find("device 'nosuchdevice'"),
            std::string::npos);
  EXPECT_EQ(type, 0);
  DLDevice id = fake_accelerator().device->id;
  id.device_id = 1;
  EXPECT_EQ(take_message(device_open(id, &d)), "device 'fakeacc:1': there is 1 fakeacc device");
  id.device_id = -1;
  EXPECT_NE(take_message(device_open(id, &d)), "");
  for (int32_t number : {0, -3, 25, 1000000}) {
    EXPECT_EQ(device_at({DLDeviceType(number), 0}), nullptr);
    EXPECT_NE(take_message(device_open({DLDeviceType(number), 0}, &d)), "");
  }
  EXPECT_EQ(device_text(fake_accelerator().device->id), "fakeacc:0");
  EXPECT_EQ(device_text(fake_host().device->id), "fakehost");
  EXPECT_EQ(device_text({DLDeviceType(kMetaType), 0}), "meta");
  EXPECT_EQ(device_kind_peek("meta"), kMetaType);
  EXPECT_EQ(device_at({DLDeviceType(kMetaType), 0}), meta_device());
}

TEST(Device, AllKindsOfCopies) {
  static Fake two;
  two.devices = 2;
  aj_device_vtbl v = accelerator_vtbl(&two, "pairacc");
  ASSERT_EQ(device_kind_add(&v, "test"), nullptr);
  Device *a, *b, *host = fake_host().device, *other = fake_accelerator().device;
  int32_t type = device_kind_peek("pairacc");
  ASSERT_EQ(device_open({DLDeviceType(type), 0}, &a), nullptr);
  ASSERT_EQ(device_open({DLDeviceType(type), 1}, &b), nullptr);
  uint64_t bytes = 9'000'001;  // more than two pieces of the stage
  for (auto [dst, src] : std::vector<std::pair<Device*, Device*>>{
           {host, host}, {a, host}, {host, a}, {a, a}, {a, b}, {a, other}, {other, b}}) {
    void *to, *from;
    uint64_t got_to, got_from;
    ASSERT_EQ(device_alloc(dst, bytes, &to, &got_to), nullptr);
    ASSERT_EQ(device_alloc(src, bytes, &from, &got_from), nullptr);
    auto *t = static_cast<unsigned char*>(to), *f = static_cast<unsigned char*>(from);
    for (uint64_t i = 0; i < bytes; i++) f[i] = static_cast<unsigned char>(i * 7 >> 3), t[i] = 0;
    ASSERT_EQ(device_copy({dst, to, 0}, {src, from, 0}, bytes), nullptr);
    EXPECT_EQ(std::memcmp(to, from, bytes), 0);
    device_free(dst, to, got_to);
    device_free(src, from, got_from);
  }
  EXPECT_GT(two.syncs, 0) << "a copy waits for the stream that may still write";
  EXPECT_EQ(device_synchronize(a), nullptr);
}

TEST(Device, StreamsAreTheThreadsOwn) {
  int one, two;
  DLDevice id = fake_accelerator().device->id;
  void* now = &one;
  ASSERT_EQ(stream_current(id, &now), nullptr);
  EXPECT_EQ(now, nullptr);
  ASSERT_EQ(stream_set(id, &one), nullptr);
  std::thread([&] {
    void* mine = &one;
    EXPECT_EQ(stream_current(id, &mine), nullptr);
    EXPECT_EQ(mine, nullptr);
    EXPECT_EQ(stream_set(id, &two), nullptr);
  }).join();
  ASSERT_EQ(stream_current({DLDeviceType(kMetaType), 0}, &now), nullptr);
  EXPECT_EQ(now, nullptr);
  ASSERT_EQ(stream_current(id, &now), nullptr);
  EXPECT_EQ(now, &one);
  ASSERT_EQ(stream_set(id, nullptr), nullptr);
  EXPECT_NE(take_message(stream_set(fake_host().device->id, &one)).find("no streams"),
            std::string::npos);
}

TEST(Services, ByPriorityOrByChoice) {
  struct Table {
    uint32_t struct_size;
  } table{sizeof(Table)};
  aj_str slot = str("x.test/slot");
  aj_service_def d{sizeof d, 1, slot, str("slow"), &table};
  const aj_services& s = services_table;
  EXPECT_EQ(s.count(slot), 0u);
  aj_service_def got{};
  got.struct_size = sizeof got;
  EXPECT_NE(take_message(s.at(slot, 0, &got)), "");
  ASSERT_EQ(service_add(d, "p"), nullptr);
  EXPECT_NE(take_message(service_add(d, "p")).find("already"), std::string::npos);
  d.name = str("fast");
  d.priority = 10;
  ASSERT_EQ(service_add(d, "q"), nullptr);
  EXPECT_EQ(s.count(slot), 2u);
  ASSERT_EQ(s.at(slot, 0, &got), nullptr);
  EXPECT_EQ(view(got.name), "fast");
  ASSERT_EQ(s.choose(slot, str("slow")), nullptr);
  ASSERT_EQ(s.at(slot, 0, &got), nullptr);
  EXPECT_EQ(view(got.name), "slow");
  EXPECT_NE(take_message(s.choose(slot, str("none"))).find("it has slow, fast"), std::string::npos);
  ASSERT_EQ(s.choose(slot, str("")), nullptr);
  ASSERT_EQ(s.at(slot, 0, &got), nullptr);
  EXPECT_EQ(view(got.name), "fast");
  service_remove("q");
  EXPECT_EQ(s.count(slot), 1u);
  service_remove("p");
}

}  // namespace
}  // namespace adjoin::test
